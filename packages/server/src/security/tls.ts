import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { createSecureContext, type SecureContextOptions, TLSSocket } from 'node:tls'
import { X509Certificate } from 'node:crypto'
import { InvalidError } from '@leasehold/core'
import type { Logger } from '@leasehold/replica'
import { watchFiles } from './watched-file.js'

/** Files in PEM form. They are read again when they change: a renewed certificate needs no restart. */
export interface TlsFiles {
  /** The certificate, followed by its intermediates. */
  readonly cert: string
  readonly key: string
  /** Authorities whose certificates the other side must show; undefined: none is asked for. */
  readonly ca?: string | undefined
}

/** TLS 1.3 is in every runtime that can run a client of ours. */
export const TLS_VERSION_MIN = 'TLSv1.3'
const DAY_MS = 86_400_000
const WARN_DAYS = 14

/** What `tls.createServer` and `tls.connect` take of the files. @throws InvalidError when they cannot be used */
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
      hint: 'both in PEM form, and the key must be that of the certificate',
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
 * Calls `use` with the files' content now, and whenever they have changed. What cannot be used is logged, and the former
 * stays in force. Returns what ends it.
 * @throws InvalidError when the files cannot be used now
 */
export function followTls(
  files: TlsFiles,
  log: Logger,
  use: (options: ReturnType<typeof readTls>) => void,
): () => void {
  const read = (): void => {
    const options = readTls(files)
    warnOfEnd(files.cert, options.cert, log)
    use(options)
  }
  read()
  const { cert, key, ca } = files
  return watchFiles([cert, key, ...(ca === undefined ? [] : [ca])], () => {
    try {
      read()
      log.info('the TLS certificate was read again', { cert })
    } catch (error) {
      log.error('the changed TLS files cannot be used: the former ones stay in force', {
        why: (error as Error).message,
      })
    }
  })
}

function warnOfEnd(file: string, pem: Buffer, log: Logger): void {
  const days = Math.floor((Date.parse(new X509Certificate(pem).validTo) - Date.now()) / DAY_MS)
  if (days < WARN_DAYS)
    log.warn(days < 0 ? 'the TLS certificate has expired' : 'the TLS certificate expires soon', { file, days })
}

/**
 * Why the certificate of a connection's other side is refused; undefined: it is good. For a service that asks for one: the
 * handshake lets everybody in, so that the refusal can say why.
 */
export function problemOfCertificate(socket: Socket): string | undefined {
  if (!(socket instanceof TLSSocket)) return 'the connection has no TLS'
  if (socket.authorized) return undefined
  // Node's types know an Error here; it is the code as a text.
  const error = socket.authorizationError as Error | string | null | undefined
  if (error === undefined || error === null) return 'there is none'
  return typeof error === 'string' ? error : error.message
}
