import { randomBytes } from 'node:crypto'
import { Command } from 'commander'
import { callService } from '../call-service.js'
import { note, print, printJson } from '../output.js'
import { numberOf } from '../argument-parsers.js'
import { withProgress } from '../progress.js'
import { type ServiceOptions, serviceCommand } from '../service-client.js'

/** The nonce deduplicates a request that is resent because its response was lost. */
const NONCE_BYTES = 16

interface Options extends ServiceOptions {
  readonly ttl: string
  readonly wait: string
  readonly shared?: boolean
  readonly permits?: number
  readonly data?: string
}

interface AcquireResponse {
  readonly hold: string
  readonly token: string
  readonly expiresInMs: number
}

/** `acquire NAME`: acquires a lock for shell scripts, and prints a handle for `renew` and `release`. */
export function acquireCommand(): Command {
  return serviceCommand(new Command('acquire').argument('<name>', 'the lock'))
    .description('acquire a lock and print a handle for renew and release (prefer: leasehold run)')
    .option('--ttl <duration>', 'how long the hold lasts without a renewal', '30s')
    .option('--wait <duration>', 'how long to wait for the lock; 0 does not wait', '30s')
    .option('--shared', 'share the lock with other shared holders')
    .option('--permits <n>', 'acquire one of n permits', numberOf('permits', 1))
    .option('--data <text>', 'text that is shown with the lock')
    .addHelpText(
      'after',
      `
The handle is a secret: it permits renew and release. The fencing token is printed to stderr, or with --json to stdout.
The hold is not renewed automatically: it expires one TTL after the last renew.

Example:
  $ HANDLE=$(leasehold acquire nightly-report --ttl 5m) || exit 75
  $ leasehold renew "$HANDLE"
  $ leasehold release "$HANDLE"`,
    )
    .action(acquire)
}

async function acquire(name: string, options: Options): Promise<void> {
  const mode = options.shared === true ? { mode: 'shared' } : {}
  const permits = options.permits === undefined ? {} : { permits: options.permits }
  const data = options.data === undefined ? {} : { data: options.data }
  const request = {
    name,
    ttl: options.ttl,
    wait: options.wait === '0' ? 0 : options.wait,
    client: `leasehold acquire ${process.ppid}`,
    nonce: randomBytes(NONCE_BYTES).toString('hex'),
    ...mode,
    ...permits,
    ...data,
  }
  const response = await withProgress(options, async (progress) => {
    progress.wait(`waiting for ${name}`)
    return (await callService(options, '/v1/acquire', request, { repeatable: true })) as AcquireResponse
  })
  if (options.json === true) return printJson(response)
  note(`token ${response.token}, for ${response.expiresInMs} ms`)
  print(response.hold)
}
