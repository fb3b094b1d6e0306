import { InvalidError, UnavailableError } from '@leasehold/core'
import { Command } from 'commander'
import { callService } from '../call-service.js'
import { print, printJson, table } from '../output.js'
import { readinessOf } from '../readiness.js'
import { type ServiceOptions, serviceCommand, tlsOf, urlOf } from '../service-client.js'

const ANSWER_TIMEOUT_MS = 15_000
/** A member that does not respond within this counts as unreachable. */
const STATUS_TIMEOUT_MS = 3000

interface ListedMember {
  readonly name: string
  readonly url: string
  readonly peer: string
  readonly role: string
  readonly matchIndex?: number
}

interface ClusterStatus {
  readonly member: string
  readonly role: string
  readonly leader: string
  readonly leaderUrl: string
  readonly term: number
  readonly commitIndex: number
  readonly appliedIndex: number
  readonly disk: string
  readonly members?: readonly ListedMember[]
}

/** `cluster status|add|promote|remove|transfer`: shows and changes the members of a cluster. */
export function clusterCommand(): Command {
  const cluster = new Command('cluster').description('the members of a cluster')
  serviceCommand(cluster.command('status'))
    .description('show the members, the leader, and how far each member is behind')
    .addHelpText('after', '\nExample:\n  $ leasehold cluster status --url http://127.0.0.1:4101,http://127.0.0.1:4102')
    .action(async (options: ServiceOptions) => {
      const answer = await status(options)
      const tls = tlsOf(options)
      const members = await Promise.all(
        (answer.members ?? []).map(async (member) => ({ ...member, state: await readinessOf(member.url, tls) })),
      )
      if (options.json === true) return printJson({ ...answer, ...(answer.members === undefined ? {} : { members }) })
      return print(statusText(answer, members))
    })
  serviceCommand(cluster.command('add').argument('<name=host:port>', 'the new member, and its --peer-listen address'))
    .description('add a running, empty member as a learner: it receives all data and has no vote')
    .addHelpText('after', '\nExample:\n  $ leasehold cluster add n4=127.0.0.1:5104')
    .action(async (place: string, options: ServiceOptions) => {
      const [name = '', peer = ''] = place.split('=')
      if (name === '' || peer === '') {
        throw new InvalidError(`write the new member as NAME=HOST:PORT, not ${JSON.stringify(place)}`, {
          hint: 'HOST:PORT is its --peer-listen address',
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
    .description('make a voter of a learner that has caught up')
    .addHelpText('after', '\nExample:\n  $ leasehold cluster promote n4')
    .action((name: string, options: ServiceOptions) =>
      change(options, '/v1/cluster/promote', { name }, `${name} is a voter`),
    )
  serviceCommand(cluster.command('remove').argument('<name>', 'the member'))
    .description('remove a member; then stop it, and empty its folder before you add it again')
    .addHelpText('after', '\nExample:\n  $ leasehold cluster remove n2')
    .action((name: string, options: ServiceOptions) =>
      change(options, '/v1/cluster/remove', { name }, `${name} is removed`),
    )
  serviceCommand(cluster.command('transfer').argument('<name>', 'the new leader'))
    .description('transfer leadership to another voter')
    .addHelpText('after', '\nExample:\n  $ leasehold cluster transfer n3')
    .action((name: string, options: ServiceOptions) =>
      change(options, '/v1/cluster/transfer', { name }, `${name} was asked to lead`),
    )
  return cluster
}

/** Returns the status from the leader if possible, because only the leader knows how far the others are. */
async function status(options: ServiceOptions): Promise<ClusterStatus> {
  const urls = urlOf(options).split(',')
  let answer: ClusterStatus | undefined
  let failure: unknown
  for (const url of urls) {
    try {
      answer = await statusOf({ ...options, url })
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
    return await statusOf({ ...options, url: answer.leaderUrl })
  } catch {
    return answer
  }
}

async function statusOf(options: ServiceOptions): Promise<ClusterStatus> {
  const call = { method: 'GET', timeoutMs: STATUS_TIMEOUT_MS, repeatable: true } as const
  return (await callService(options, '/v1/cluster', undefined, call)) as ClusterStatus
}

async function change(options: ServiceOptions, path: string, body: object, text: string): Promise<void> {
  const answer = await callService(options, path, body, { timeoutMs: ANSWER_TIMEOUT_MS })
  if (options.json === true) printJson(answer)
  else print(text)
}

function statusText(answer: ClusterStatus, members: readonly (ListedMember & { state: string })[]): string {
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
