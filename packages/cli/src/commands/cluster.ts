import { InvalidError, UnavailableError } from '@leasehold/core'
import { Command } from 'commander'
import { callService } from '../call-service.js'
import { print, printJson, table } from '../output.js'
import { stateAt } from '../readiness.js'
import { type ServiceOptions, serviceCommand, tlsOf, urlOf } from '../service-client.js'

const ANSWER_TIMEOUT_MS = 15_000
/** One that does not answer this at once is as good as away. */
const STATUS_TIMEOUT_MS = 3000

interface Listed {
  readonly name: string
  readonly url: string
  readonly peer: string
  readonly role: string
  readonly matchIndex?: number
}

interface ClusterAnswer {
  readonly member: string
  readonly role: string
  readonly leader: string
  readonly leaderUrl: string
  readonly term: number
  readonly commitIndex: number
  readonly appliedIndex: number
  readonly disk: string
  readonly members?: readonly Listed[]
}

/** `cluster status|add|promote|remove|transfer`: the members of a cluster, and changes of them. */
export function clusterCommand(): Command {
  const cluster = new Command('cluster').description('the members of a cluster')
  serviceCommand(cluster.command('status'))
    .description('show the members, who leads and how far everybody is')
    .addHelpText('after', '\nExample:\n  $ leasehold cluster status --url http://127.0.0.1:4101,http://127.0.0.1:4102')
    .action(async (options: ServiceOptions) => {
      const answer = await status(options)
      const tls = tlsOf(options)
      const members = await Promise.all(
        (answer.members ?? []).map(async (member) => ({ ...member, state: await stateAt(member.url, tls) })),
      )
      if (options.json === true) return printJson({ ...answer, ...(answer.members === undefined ? {} : { members }) })
      return print(statusText(answer, members))
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

function statusText(answer: ClusterAnswer, members: readonly (Listed & { state: string })[]): string {
  const { member, role, leader, term, commitIndex } = answer
  const head = `asked ${member} (${role}), leader ${leader || 'none'}, term ${term}, commit ${commitIndex}`
  if (members.length === 0) return `${head}\nthis is a service of one`
  const rows = members.map(({ name, role: kind, peer, url, matchIndex, state }) => [
    name,
    name === leader ? 'leader' : kind,
    state,
    matchIndex === undefined ? '' : String(Math.max(0, commitIndex - matchIndex)),
    peer,
    url,
  ])
  if (!members.some(({ name }) => name === member)) rows.push([member, 'no member', '', '', '', ''])
  return `${head}\n${table(['MEMBER', 'ROLE', 'STATE', 'BEHIND', 'PEERS AT', 'CLIENTS AT'], rows)}`
}
