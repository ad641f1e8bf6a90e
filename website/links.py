"""Hooks of the site: links out of docs/ are checked and led on, the studies' page is made, nothing comes from the network."""

import re
import tomllib
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

from iddm.studies.report.page import study_page
from iddm.studies.results import Results

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PICTURES = (".svg", ".png", ".webp")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((\.\./[^)#\s]+)(#[^)]*)?\)")
FROM_THE_NETWORK = re.compile(r'<(?:script|img|iframe|source)[^>]+src="https?:|<link(?![^>]+rel="canonical")[^>]+href="https?:')


def _repository() -> str | None:
    """Where the sources can be looked at, if the package says so."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"].get("urls", {})
    return urls.get("Repository") or urls.get("Source")


def on_files(files, config):
    """The page of all studies, our style sheet, and the pictures of results/ that the docs show."""
    results = ROOT / "results"
    page = study_page(Results.load(results / "studies"), results / "studies")
    files.append(File.generated(config, "all-studies.html", content=page))
    files.append(File.generated(config, "site.css", abs_src_path=str(Path(__file__).with_name("site.css"))))
    for picture in sorted(p for p in results.rglob("*") if p.suffix in PICTURES):
        files.append(File.generated(config, str(picture.relative_to(ROOT)), abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Lead links out of docs/ to the site's own copy of a picture, else to the repository, else make them plain text."""
    here = (DOCS / page.file.src_uri).parent
    up = "../" * page.file.src_uri.count("/")

    def led(found: re.Match[str]) -> str:
        picture, text, target, place = found[1], found[2], found[3], found[4] or ""
        path = (here / target).resolve()
        if path.is_relative_to(DOCS):
            return found[0]
        if not path.exists():
            raise PluginError(f"{page.file.src_uri}: {target} does not exist.")
        inside = path.relative_to(ROOT).as_posix()
        if picture or path.suffix in PICTURES:
            return f"{picture}[{text}]({up}{inside})"
        repository = _repository()
        return f"[{text}]({repository}/blob/main/{inside}{place})" if repository else text

    return LINK.sub(led, markdown)


def on_post_page(output, page, config):
    if found := FROM_THE_NETWORK.search(output):
        raise PluginError(f"{page.file.src_uri}: loads something from the network: {found[0]}")
    return output


def on_post_build(config):
    """From the disk, pages ask for the index as a script, and complain without it; the search itself needs a server."""
    search = Path(config.site_dir) / "search"
    (search / "search_index.js").write_text(f"var __index = {(search / 'search_index.json').read_text()}")
