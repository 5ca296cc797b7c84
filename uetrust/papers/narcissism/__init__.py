"""Liu et al. 2024: do likelihood-based metrics favour texts of their own model?"""
