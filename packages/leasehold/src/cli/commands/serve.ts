import { isIPv6 } from 'node:net'
import { Command, InvalidArgumentError, Option } from 'commander'
import { numberOf } from '../numbers.js'
import type { Listen, ServeOptions } from '../serve/serve.js'

const EPOCH_MAX = 32_767
const DEFAULT_LISTEN = '127.0.0.1:4100'

/** `serve`: the lock service on one machine. */
export function serveCommand(): Command {
  return new Command('serve')
    .description('run the lock service')
    .option('--data <dir>', 'data folder; made if it is not there', './data')
    .addOption(
      new Option('--listen <host:port>', 'where clients connect; port 0 takes a free one')
        .argParser(readListen)
        .default(readListen(DEFAULT_LISTEN), DEFAULT_LISTEN),
    )
    .option('--advertise-url <url>', 'where clients reach the service, if not at the address it listens on')
    .option(
      '--epoch <n>',
      'first epoch of an empty service, above that of a service it replaces',
      numberOf('the epoch', 1, EPOCH_MAX),
    )
    .option('--name <name>', 'name of this member of a cluster')
    .option('--peer-listen <host:port>', 'where this member takes the other members')
    .option('--cluster <list>', 'all members, the same list for each: n1=HOST:PORT,n2=HOST:PORT,n3=HOST:PORT')
    .option(
      '--repair',
      'a member whose data folder is damaged or empty takes its place again by itself, with the data of the others',
    )
    .option('--allow-anonymous', 'listen beyond this machine although nobody is asked for credentials')
    .option('--take-over', 'take the data folder from an owner on another machine that you know is dead')
    .addOption(
      new Option('--log-level <level>', 'log lines on stderr')
        .choices(['info', 'warn', 'error', 'silent'])
        .default('info'),
    )
    .option('--json', 'print the ready line as JSON')
    .addHelpText(
      'after',
      `
Prints one line when it is ready. SIGTERM or SIGINT stop it: no acknowledged command is lost.

Examples:
  $ leasehold serve --data ./data --listen 127.0.0.1:4100
  $ leasehold serve --data ./n1 --listen 127.0.0.1:4101 --name n1 --peer-listen 127.0.0.1:5101 \\
      --cluster n1=127.0.0.1:5101,n2=127.0.0.1:5102,n3=127.0.0.1:5103`,
    )
    .action(async (options: ServeOptions) => {
      // Loaded here, so that the other commands start without it.
      const { serve } = await import('../serve/serve.js')
      await serve(options)
    })
}

/** `127.0.0.1:4100`, `[::1]:4100`, `localhost:0`. */
function readListen(text: string): Listen {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  if (host === undefined || port > 65_535 || (match?.[1] !== undefined && !isIPv6(host))) {
    throw new InvalidArgumentError('write HOST:PORT, such as 127.0.0.1:4100 or [::1]:4100.')
  }
  return { host, port }
}
