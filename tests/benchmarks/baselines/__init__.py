"""The baselines of the product: stock ways to do the same, under the same server options."""
