"""The qualification statement: what was qualified, by which evidence, and GO or NO-GO by stated rules."""
