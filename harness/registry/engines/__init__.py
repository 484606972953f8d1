"""Docker engines that the harness uses: one of its own, or the machine's."""
