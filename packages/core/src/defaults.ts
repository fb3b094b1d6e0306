/** The address on which a service listens by default. */
export const DEFAULT_LISTEN = '127.0.0.1:4100'

/** The URL of a service at its default address. */
export const DEFAULT_URL = `http://${DEFAULT_LISTEN}`
