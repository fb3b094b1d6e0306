import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { createSecureContext, type SecureContextOptions, TLSSocket } from 'node:tls'
import { X509Certificate } from 'node:crypto'
import { InvalidError } from '@leasehold/core'
import type { Logger } from '@leasehold/replica'
import { watchFiles } from './watched-file.js'

/** Files in PEM format. They are reloaded when they change, so a renewed certificate needs no restart. */
export interface TlsFiles {
  /** The certificate, followed by its intermediates. */
  readonly cert: string
  readonly key: string
  /** Authorities of which the peer must present a certificate; undefined: no certificate is required. */
  readonly ca?: string | undefined
}

/** Every runtime that our clients support has TLS 1.3. */
export const TLS_VERSION_MIN = 'TLSv1.3'
const DAY_MS = 86_400_000
const WARN_DAYS = 14

/** Reads the files as options of `tls.createServer` and `tls.connect`. @throws InvalidError when they are not usable */
export function readTls({
  cert,
  key,
  ca,
}: TlsFiles): SecureContextOptions & { readonly cert: Buffer; readonly key: Buffer } {
  const options = {
    cert: readPem(cert, 'certificate'),
    key: readPem(key, 'key'),
    ...(ca === undefined ? {} : { ca: readPem(ca, 'certificates of the authority') }),
    minVersion: TLS_VERSION_MIN,
  } as const
  try {
    createSecureContext(options)
  } catch (cause) {
    throw new InvalidError(`${cert} and ${key} cannot be used for TLS: ${(cause as Error).message}`, {
      cause,
      hint: 'both must be in PEM format, and the key must belong to the certificate',
    })
  }
  return options
}

function readPem(file: string, what: string): Buffer {
  try {
    return readFileSync(file)
  } catch (cause) {
    throw new InvalidError(`cannot read the TLS ${what}: ${(cause as Error).message}`, { cause })
  }
}

/**
 * Calls `use` with the content of the files now, and whenever they change. Content that is not usable is logged, and the
 * previous content stays in force. Returns a function that stops it.
 * @throws InvalidError when the files are not usable now
 */
export function followTls(
  files: TlsFiles,
  log: Logger,
  use: (options: ReturnType<typeof readTls>) => void,
): () => void {
  const read = (): void => {
    const options = readTls(files)
    warnBeforeExpiry(files.cert, options.cert, log)
    use(options)
  }
  read()
  const { cert, key, ca } = files
  return watchFiles([cert, key, ...(ca === undefined ? [] : [ca])], () => {
    try {
      read()
      log.info('reloaded the TLS certificate', { cert })
    } catch (error) {
      log.error('cannot use the changed TLS files: the previous ones stay in force', {
        why: (error as Error).message,
      })
    }
  })
}

function warnBeforeExpiry(file: string, pem: Buffer, log: Logger): void {
  const days = Math.floor((Date.parse(new X509Certificate(pem).validTo) - Date.now()) / DAY_MS)
  if (days < WARN_DAYS)
    log.warn(days < 0 ? 'the TLS certificate has expired' : 'the TLS certificate expires soon', { file, days })
}

/**
 * Why the client certificate of a connection is rejected; undefined if it is valid. For a service that requires one: the
 * handshake accepts every certificate, so that the error response can contain the reason.
 */
export function problemOfCertificate(socket: Socket): string | undefined {
  if (!(socket instanceof TLSSocket)) return 'the connection has no TLS'
  if (socket.authorized) return undefined
  // Node's types declare an Error here, but the value is the code as a string.
  const error = socket.authorizationError as Error | string | null | undefined
  if (error === undefined || error === null) return 'it sent none'
  return typeof error === 'string' ? error : error.message
}
