import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { DEFAULT_URL, InvalidError } from '@leasehold/core'
import { type Command, Option } from 'commander'
import type { Locks, LocksOptions } from 'leasehold'

/** How long closing the client may delay the end of a command. */
const CLOSE_LIMIT_MS = 1_000

/** Shorter than the client's default, for interactive use. `run` has its own. */
const CONNECT_TIMEOUT_MS = 2_000

/** Options of every command that talks to a service. */
export interface ServiceOptions {
  readonly url?: string
  readonly apiKeyFile?: string
  readonly tlsCa?: string
  readonly tlsCert?: string
  readonly tlsKey?: string
  readonly json?: boolean
}

/** Certificates and key for `https://`, in PEM form. */
export interface ClientTls {
  readonly ca?: Buffer
  readonly cert?: Buffer
  readonly key?: Buffer
}

/** Adds the options of {@link ServiceOptions} to a command. */
export function serviceCommand(command: Command): Command {
  return command
    .option('--url <url>', `the service; several members by comma (env LEASEHOLD_URL, default ${DEFAULT_URL})`)
    .option('--api-key-file <file>', 'file that contains the API key (env LEASEHOLD_API_KEY: the key itself)')
    .addOption(
      new Option('--tls-ca <file>', 'for https: the CA certificate of the service, if it is a private CA').env(
        'LEASEHOLD_TLS_CA',
      ),
    )
    .addOption(
      new Option('--tls-cert <file>', 'for https: the certificate of this client').env('LEASEHOLD_CLIENT_TLS_CERT'),
    )
    .addOption(new Option('--tls-key <file>', 'for https: the key of this client').env('LEASEHOLD_CLIENT_TLS_KEY'))
    .option('--json', 'print JSON')
}

/** Reads the certificates. @throws InvalidError for a file that cannot be read */
export function tlsOf({ tlsCa: ca, tlsCert: cert, tlsKey: key }: ServiceOptions): ClientTls {
  const files = { ca, cert, key }
  const given = Object.entries(files).filter((one): one is [string, string] => one[1] !== undefined)
  return Object.fromEntries(
    given.map(([name, file]) => {
      try {
        return [name, readFileSync(file)]
      } catch (cause) {
        throw new InvalidError(`cannot read ${file}: ${(cause as Error).message}`, { cause })
      }
    }),
  )
}

export function urlOf(options: ServiceOptions): string {
  return options.url ?? process.env.LEASEHOLD_URL ?? DEFAULT_URL
}

export function apiKeyOf(options: ServiceOptions): string | undefined {
  if (options.apiKeyFile === undefined) return process.env.LEASEHOLD_API_KEY
  try {
    return readFileSync(options.apiKeyFile, 'utf8').trim()
  } catch (cause) {
    throw new InvalidError(`cannot read the API key file: ${(cause as Error).message}`, { cause })
  }
}

/** Runs `body` with a client of the service, and closes the client afterwards. */
export async function withLocks<T>(
  options: ServiceOptions,
  body: (locks: Locks) => Promise<T>,
  more: LocksOptions = {},
): Promise<T> {
  const apiKey = apiKeyOf(options)
  // Loaded here, so that commands without a client start faster.
  const { createLocks } = await import('leasehold')
  const locks = createLocks(urlOf(options), {
    connectTimeout: CONNECT_TIMEOUT_MS,
    clientName: `leasehold-cli ${process.pid}`,
    ...(apiKey === undefined ? {} : { apiKey }),
    tls: tlsOf(options),
    ...more,
  })
  try {
    return await body(locks)
  } finally {
    const limit = new AbortController()
    await Promise.race([locks.close(), sleep(CLOSE_LIMIT_MS, undefined, { signal: limit.signal }).catch(() => {})])
    limit.abort()
  }
}
