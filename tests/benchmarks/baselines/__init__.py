"""What the product is compared with: stock ways to do the same, under the same server options."""
