"""A real docker registry under control: the service, its tokens, images to push, and what it truly holds."""
