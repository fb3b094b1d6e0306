/** Every bound of the network face, with its name and its reason. Milliseconds and bytes. */

/** A request body: one register value in base64 inside JSON (88 KiB), or 64 names of 512 bytes, all escaped. */
export const BODY_BYTES_MAX = 256 * 1024

/** One WebSocket message of a client: a full batch of commands, each at most a register value. */
export const FRAME_BYTES_MAX = 4 * 1024 * 1024

/** Bytes of all streams together that came before their credentials were known to be good. */
export const EARLY_BYTES_MAX = 64 * 1024 * 1024

/** Unsent bytes of one WebSocket or event stream. A client that lets more pile up is cut off. */
export const UNSENT_BYTES_MAX = 4 * 1024 * 1024

/** Events of one server-sent stream that may wait for the socket. */
export const EVENT_BYTES_MAX = 1024 * 1024

export const EVENT_STREAMS_MAX = 1_000

export const CONNECTIONS_MAX = 10_000

/** Acquires over HTTP that may wait at the same time. */
export const WAITING_MAX = 10_000

/** Sessions whose request numbers are kept in memory; idle ones are dropped first and read from the state when needed. */
export const SESSIONS_KEPT_MAX = 20_000

/** Answers of a session that stay with the service, for clients that number their requests themselves. */
export const ANSWERS_KEPT = 64

/** Ended holds of a session whose reason is remembered, to tell a late renewal why. */
export const ENDS_KEPT = 64

/** Calls that may wait for the same request of a session. */
export const REPEATS_MAX = 16

/** Backups that may be under way: each holds a copy of the whole state until it is sent. */
export const BACKUPS_MAX = 2

/** How long a command may be without an outcome before its client is told `unknown-outcome`. */
export const COMMAND_TIMEOUT_MS = 10_000

/** How long a linearizable read may take before its client is told `no-quorum`. */
export const READ_TIMEOUT_MS = 5_000

/** Commits that a ready member may be behind. */
export const READY_LAG_MAX = 1_000

/** A stopping server waits this long for its requests, then closes what is left. */
export const STOP_TIMEOUT_MS = 5_000

/** A stopping server waits this long for the answer to its close frame. */
export const STREAM_CLOSE_MS = 1_000

/** A stream that has not sent its first frame in this time is closed. */
export const HELLO_TIMEOUT_MS = 10_000

/** Messages of one frame to a client. */
export const STREAM_FRAME_MESSAGES = 512

/** Time between two checks that a peer still lives. */
export const PING_INTERVAL_MS = 20_000

export const HEADERS_TIMEOUT_MS = 10_000
export const REQUEST_TIMEOUT_MS = 30_000
export const KEEP_ALIVE_MS = 65_000

/** Time between two comment lines of an idle event stream, so that proxies keep it open. */
export const EVENT_HEARTBEAT_MS = 15_000

/** Lease of a session that is opened for a single write. */
export const WRITE_TTL_MS = 10_000
