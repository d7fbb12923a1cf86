"""Facts from text: the OpenIE engine and the cascade around it."""
