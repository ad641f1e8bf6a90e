"""The paper's studies, and what runs them."""
