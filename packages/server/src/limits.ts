/* Every limit of the server, with its reason. In milliseconds and bytes, unless the comment names another unit. */

/** A request body: one register value in base64 inside JSON (88 KiB), or 64 names of 512 bytes, all escaped. */
export const BODY_BYTES_MAX = 256 * 1024

/** One WebSocket message of a client: a full batch of commands, each up to a register value in size. */
export const FRAME_BYTES_MAX = 4 * 1024 * 1024

/** Bytes received on all unauthenticated streams together. */
export const PREAUTH_BYTES_MAX = 64 * 1024 * 1024

/** Unsent bytes of one stream. A client that reads so slowly that more pile up is disconnected. */
export const UNSENT_BYTES_MAX = 4 * 1024 * 1024

/** Unsent bytes of one server-sent event stream. */
export const EVENT_BYTES_MAX = 1024 * 1024

export const EVENT_STREAMS_MAX = 1_000

/** Established connections of clients, if the limit of open files permits as many. */
export const CLIENTS_MAX = 10_000

/** Connections of clients that have not sent a complete request or hello. The oldest one beyond is closed. */
export const NEW_CLIENTS_MAX = 1_024

/** Established connections on the peer port: each member has a few. */
export const PEERS_MAX = 256

/** Connections on the peer port that have not sent a complete frame. The oldest one beyond is closed. */
export const NEW_PEERS_MAX = 64

/** A connection on the peer port without a TLS handshake, or then without a complete frame, within this time is closed. */
export const FIRST_FRAME_TIMEOUT_MS = 10_000

/** File descriptors for log files, snapshots, and connections to other members. */
export const DESCRIPTORS_RESERVED = 96

/** The limit of open files where the system does not report it. */
export const DESCRIPTORS_DEFAULT = 1_024

/** Requests of one HTTP connection that were started and whose responses are not completely sent. */
export const REQUESTS_IN_WORK_MAX = 16

/** Parsed requests of one HTTP connection that wait behind those in work. A connection with more is closed. */
export const PIPELINED_MAX = 256

/** Acquires over HTTP that wait at the same time. */
export const WAITING_MAX = 10_000

/** Sessions whose request numbers are in memory; idle ones are evicted first, and read from the state when needed. */
export const SESSIONS_KEPT_MAX = 20_000

/** Stored answers per session, for clients that number their requests. */
export const ANSWERS_KEPT = 64

/** Ended holds per session whose reason is kept, to report it to a late renewal. */
export const ENDS_KEPT = 64

/** Calls that wait for the same request of a session. */
export const REPEATS_MAX = 16

/** Backups in progress: each keeps a copy of the whole state until it is sent. */
export const BACKUPS_MAX = 2

/** A command without an outcome after this time fails with `unknown-outcome`. */
export const COMMAND_TIMEOUT_MS = 10_000

/** A linearizable read without an answer after this time fails with `no-quorum`. */
export const READ_TIMEOUT_MS = 5_000

/** Committed but unapplied entries up to which a member is ready. */
export const READY_LAG_MAX = 1_000

/** A stopping server waits this long for its requests, then cuts the remaining connections. */
export const STOP_TIMEOUT_MS = 5_000

/** A stopping server waits this long for the answer to its close frame. */
export const STREAM_CLOSE_MS = 1_000

/** A stream that has not sent its first frame within this time is closed. */
export const HELLO_TIMEOUT_MS = 10_000

/** Messages of one frame to a client. */
export const STREAM_FRAME_MESSAGES = 512

/** Interval of the pings that detect dead clients. */
export const PING_INTERVAL_MS = 20_000

export const HEADERS_BYTES_MAX = 16_384
export const HEADERS_TIMEOUT_MS = 10_000
export const REQUEST_TIMEOUT_MS = 30_000
export const KEEP_ALIVE_MS = 65_000

/** Interval in which the server looks for requests and headers that are too late. */
export const LATE_CHECK_MS = 2_000

/** A connection whose client has not read any of its unsent response for this long, or at most twice as long, is closed. */
export const STALLED_TIMEOUT_MS = 30_000

/** Interval of comment lines in an event stream, so that proxies keep it open. */
export const EVENT_HEARTBEAT_MS = 15_000

/** TTL of a session that is opened for a single write. */
export const WRITE_TTL_MS = 10_000
