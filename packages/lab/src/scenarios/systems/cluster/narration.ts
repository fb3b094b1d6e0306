import type { Step } from '../../format.js'
import type { DiskTroubleSpec, SystemFault } from '../../scenario-fault.js'

type Act = Step & { readonly do: 'client' }
type Facts = Readonly<Record<string, unknown>>

/** A step of a client as a sentence without its subject, when it begins. Undefined: it is told when it is done, if at all. */
export function startSentence(step: Act): string | undefined {
  switch (step.action) {
    case 'take':
      return `asks for ${wanted(step)}`
    case 'campaign':
      return 'wants to lead'
    case 'adopt':
      return 'takes over a hold'
    case 'loop':
      return `acquires and releases ${namesOf(step)} ${text(step.count)} times`
    case 'queueUp':
      return `asks for ${namesOf(step)} ${text(step.count)} times at once`
    case 'many':
      return `opens ${text(step.count)} sessions with a hold each`
    case 'watch':
      return 'begins to watch'
    case 'observe':
      return 'observes the election'
    case 'abort':
      return 'gives up waiting'
    case 'close':
      return 'closes its client'
    default:
      return undefined
  }
}

/** What came of it; `facts` are those of the observation. Undefined: nothing that has not been said. */
export function endSentence({ action, ...step }: Act, facts: Facts): string | undefined {
  if (typeof facts.error === 'string') return `${action}: ${facts.error}`
  switch (action) {
    case 'state':
      return `looks at its hold: ${text(facts.state)}`
    case 'query':
      return `asks for the holders: ${list(facts.held)}`
    case 'get':
      return `reads ${text(step.key)}: ${text(facts.value)}`
    case 'put':
      return `writes ${text(step.key)}`
    case 'delete':
      return `deletes ${text(step.key)}`
    case 'steal':
      return `steals ${text(step.lock)}`
    case 'hand':
      return 'hands its hold over'
    case 'loop':
      return `has done it ${text(facts.done)} times`
    case 'queueUp':
      return `has got it ${text(facts.granted)} times, ${facts.inOrder === true ? 'in order' : 'not in order'}`
    case 'many':
      return `has ${text(facts.granted)} holds`
    case 'watch':
      return `has seen ${text(facts.count)} events, until: ${text(facts.end)}`
    case 'observe':
      return `has seen as leaders: ${list(facts.leaders)}`
    default:
      return undefined
  }
}

/** What a fault of a cluster does, as a sentence about `who` (empty: about all). */
export function faultSentence(fault: SystemFault): string | undefined {
  const during = 'for' in fault && fault.for !== undefined ? ` for ${fault.for} s` : ''
  switch (fault.action) {
    case 'disk':
      return `${DISK[fault.trouble]}${during}`
    case 'rot':
      return `a bit of its ${fault.file ?? 'log'} changes on the disk`
    case 'expire':
      return 'its credentials end'
    case 'allow':
      return 'its rights change'
    case 'blackout':
      return `all members lose power${during}`
    case 'down':
      return `${fault.how === 'kill' ? 'is killed, and is away' : 'loses power'}${during}`
    case 'dieAtEffect':
      return `is to ${fault.how === 'kill' ? 'be killed' : 'go down'}${during}, at effect ${fault.nth} from now`
    case 'reset':
      return 'its connections break'
    case 'transfer':
      return 'is asked to lead'
    case 'copyDisk':
      return 'its disk is copied'
    case 'setBack':
      return 'loses power, and gets the older copy of its disk'
    case 'replaceDisk':
      return 'gets an empty disk'
    case 'configure':
      return 'the service is reconfigured'
    case 'backup':
      return 'a backup is taken'
    case 'restore':
      return `gets the backup, as the first of a service of epoch ${text(fault.epoch)}`
    case 'foundAgain':
      return 'all disks are emptied, and the service is founded again'
    default:
      return undefined
  }
}

const DISK: Readonly<Record<DiskTroubleSpec['trouble'], string>> = {
  failSync: 'its next sync fails',
  failWrite: 'its next write fails',
  misdirect: 'its disk reads or writes the wrong place',
  readOnly: 'its disk is read-only',
  slow: 'its disk is slow',
  stuck: 'its disk is stuck',
  full: 'its disk is full',
  removed: 'its data folder is removed',
}

function wanted(step: Act): string {
  const names = namesOf(step)
  if (typeof step.permits === 'number') return `one of ${step.permits} permits of ${names}`
  return step.mode === 'shared' ? `a share of ${names}` : names
}

function namesOf({ locks, lock }: Act): string {
  const names = (Array.isArray(locks) ? locks : [lock ?? 'L']) as (string | { readonly name: string })[]
  return names.map((one) => (typeof one === 'string' ? one : one.name)).join(' and ')
}

function list(value: unknown): string {
  const names = Array.isArray(value) ? value.map((one) => text(one)) : []
  return names.length === 0 ? 'none' : names.join(', ')
}

function text(value: unknown): string {
  if (value === null || value === undefined) return 'nothing'
  return typeof value === 'object' ? JSON.stringify(value) : String(value as string | number)
}
