import { randomBytes } from 'node:crypto'
import { Command } from 'commander'
import { callService } from '../call-service.js'
import { note, print, printJson } from '../output.js'
import { numberOf } from '../argument-parsers.js'
import { withProgress } from '../progress.js'
import { type ServiceOptions, serviceCommand } from '../service-client.js'

/** With the same nonce the same request, sent again after its answer was lost, takes nothing twice. */
const NONCE_BYTES = 16

interface Options extends ServiceOptions {
  readonly ttl: string
  readonly wait: string
  readonly shared?: boolean
  readonly permits?: number
  readonly data?: string
}

interface Answer {
  readonly hold: string
  readonly token: string
  readonly expiresInMs: number
}

/** `acquire NAME`: for shell scripts; prints a handle that `renew` and `release` take. */
export function acquireCommand(): Command {
  return serviceCommand(new Command('acquire').argument('<name>', 'the lock'))
    .description('take a lock and print a handle for renew and release (prefer: leasehold run)')
    .option('--ttl <duration>', 'how long the hold lasts without a renewal', '30s')
    .option('--wait <duration>', 'how long to wait for the lock; 0 does not wait', '30s')
    .option('--shared', 'together with other shared holders')
    .option('--permits <n>', 'take one of n permits', numberOf('permits', 1))
    .option('--data <text>', 'shown to people who look at the lock')
    .addHelpText(
      'after',
      `
The handle is a secret: whoever has it can renew and release. The fencing token goes to stderr, and with --json into
the answer. Nothing renews the hold by itself: it ends one TTL after the last renew.

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
  const answer = await withProgress(options, async (progress) => {
    progress.wait(`waiting for ${name}`)
    return (await callService(options, '/v1/acquire', request, { repeatable: true })) as Answer
  })
  if (options.json === true) return printJson(answer)
  note(`token ${answer.token}, for ${answer.expiresInMs} ms`)
  print(answer.hold)
}
