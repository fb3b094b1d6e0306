import { InvalidError, UnavailableError } from '@leasehold/core'
import { Command } from 'commander'
import { callService } from '../http.js'
import { print, printJson } from '../output.js'
import { type ServiceOptions, serviceCommand, urlOf } from '../service.js'

const ANSWER_TIMEOUT_MS = 15_000
/** One that does not answer this at once is as good as away. */
const STATUS_TIMEOUT_MS = 3000

interface ClusterAnswer {
  readonly member: string
  readonly role: string
  readonly leader: string
  readonly leaderUrl: string
  readonly term: number
  readonly commitIndex: number
  readonly appliedIndex: number
  readonly disk: string
  readonly members?: readonly { name: string; url: string; peer: string; role: string; matchIndex?: number }[]
}

/** `cluster status|add|promote|remove|transfer`: the members of a cluster, and changes of them. */
export function clusterCommand(): Command {
  const cluster = new Command('cluster').description('the members of a cluster')
  serviceCommand(cluster.command('status'))
    .description('show the members, who leads and how far everybody is')
    .addHelpText('after', '\nExample:\n  $ leasehold cluster status --url http://127.0.0.1:4101,http://127.0.0.1:4102')
    .action(async (options: ServiceOptions) => {
      const answer = await status(options)
      if (options.json === true) return printJson(answer)
      return print(statusText(answer))
    })
  serviceCommand(cluster.command('add').argument('<name=host:port>', 'the new member, and where it listens to members'))
    .description('add an empty member that is started already, as a learner: it gets everything and has no vote')
    .addHelpText('after', '\nExample:\n  $ leasehold cluster add n4=127.0.0.1:5104')
    .action(async (place: string, options: ServiceOptions) => {
      const [name = '', peer = ''] = place.split('=')
      if (name === '' || peer === '') {
        throw new InvalidError(`a new member is named as NAME=HOST:PORT, not ${JSON.stringify(place)}`, {
          hint: 'HOST:PORT is where it listens to the other members: its --peer-listen',
        })
      }
      await change(
        options,
        '/v1/cluster/add',
        { name, peer },
        `${name} is a learner; when it has caught up: leasehold cluster promote ${name}`,
      )
    })
  serviceCommand(cluster.command('promote').argument('<name>', 'the learner'))
    .description('make a learner that has caught up a voter')
    .addHelpText('after', '\nExample:\n  $ leasehold cluster promote n4')
    .action((name: string, options: ServiceOptions) =>
      change(options, '/v1/cluster/promote', { name }, `${name} is a voter`),
    )
  serviceCommand(cluster.command('remove').argument('<name>', 'the member'))
    .description('remove a member; then stop it, and empty its folder before it is added again')
    .addHelpText('after', '\nExample:\n  $ leasehold cluster remove n2')
    .action((name: string, options: ServiceOptions) =>
      change(options, '/v1/cluster/remove', { name }, `${name} is removed`),
    )
  serviceCommand(cluster.command('transfer').argument('<name>', 'the voter that shall lead'))
    .description('hand leadership to another voter')
    .addHelpText('after', '\nExample:\n  $ leasehold cluster transfer n3')
    .action((name: string, options: ServiceOptions) =>
      change(options, '/v1/cluster/transfer', { name }, `${name} was asked to lead`),
    )
  return cluster
}

/** What the leader says, or who else answers: only the leader knows how far the others are. */
async function status(options: ServiceOptions): Promise<ClusterAnswer> {
  const urls = urlOf(options).split(',')
  let answer: ClusterAnswer | undefined
  let failure: unknown
  for (const url of urls) {
    try {
      answer = await standing({ ...options, url })
      if (answer.leader !== '') break
    } catch (error) {
      failure = error
    }
  }
  if (answer === undefined) {
    throw urls.length === 1 ? failure : new UnavailableError(`cannot reach ${urls.join(', ')}`, { cause: failure })
  }
  if (answer.leader === answer.member || answer.leaderUrl === '') return answer
  try {
    return await standing({ ...options, url: answer.leaderUrl })
  } catch {
    return answer
  }
}

async function standing(options: ServiceOptions): Promise<ClusterAnswer> {
  const call = { method: 'GET', timeoutMs: STATUS_TIMEOUT_MS, repeatable: true } as const
  return (await callService(options, '/v1/cluster', undefined, call)) as ClusterAnswer
}

async function change(options: ServiceOptions, path: string, body: object, text: string): Promise<void> {
  const answer = await callService(options, path, body, { timeoutMs: ANSWER_TIMEOUT_MS })
  if (options.json === true) printJson(answer)
  else print(text)
}

function statusText(answer: ClusterAnswer): string {
  const head = `asked ${answer.member} (${answer.role}), leader ${answer.leader || 'none'}, term ${answer.term}, commit ${answer.commitIndex}`
  const rows = (answer.members ?? []).map(({ name, role, peer, url, matchIndex }) => [
    name,
    name === answer.leader ? 'leader' : role,
    matchIndex === undefined ? '' : String(Math.max(0, answer.commitIndex - matchIndex)),
    peer,
    url,
  ])
  if (rows.length === 0) return `${head}\nthis is a service of one`
  if (!rows.some(([name]) => name === answer.member)) rows.push([answer.member, 'no member', '', '', ''])
  const all = [['MEMBER', 'ROLE', 'BEHIND', 'PEERS AT', 'CLIENTS AT'], ...rows]
  const widths = [0, 1, 2, 3].map((column) => Math.max(...all.map((row) => (row[column] as string).length)))
  const lines = all.map((row) =>
    row
      .map((cell, i) => (i < 4 ? cell.padEnd(widths[i] as number) : cell))
      .join('  ')
      .trimEnd(),
  )
  return [head, ...lines].join('\n')
}
