"""Who may write to a card: leases that several runs share, and the hold on the card's own host."""
