import { type Effects, type Entry, type Message, Raft } from '../../src/index.js'
import { entriesText, messageText, snapshotText } from './describe.js'

/** What the append or apply thread says to the core when it is done. */
export interface ThreadReply {
  readonly thread: 'append' | 'apply'
  readonly to: number
  readonly text: string
  /** Of an append: the write, the term that it was handed out in, and the last entry that was not durable then. */
  readonly sequence: number
  readonly term: number
  readonly last: { readonly index: number; readonly term: number } | undefined
  /** Of an apply: everything up to here is applied. */
  readonly upTo: number
}

export type Parcel = Message | ThreadReply

export interface Work {
  readonly text: string
  readonly effects: Effects
  readonly replies: readonly Parcel[]
}

export function isReply(parcel: Parcel): parcel is ThreadReply {
  return 'thread' in parcel
}

export function parcelText(parcel: Parcel, indent = ''): string {
  return isReply(parcel) ? parcel.text.replace(/^/gm, indent) : messageText(parcel, indent)
}

function withReplies(text: string, replies: readonly Parcel[]): string {
  if (replies.length === 0) return text
  return `${text} Responses:[${replies.map((one) => `\n${parcelText(one, '  ')}`).join('')}\n]`
}

/**
 * Writing and applying as threads of their own, as some scripts have it: each takes work from a queue, and its replies
 * travel as messages. The scripts' core learns from a reply only what was the last entry that was not durable when the
 * work was handed out, and believes it if term and entry still stand; ours knows more, and is told no more here.
 */
export class Threads {
  readonly appendWork: Work[] = []
  readonly applyWork: Work[] = []
  /** First entry that the scripts' core would not call durable. */
  private unstable: number

  constructor(
    private readonly raft: Raft,
    base: number,
  ) {
    this.unstable = base + 1
  }

  /** Queues what effects ask for; returns how the scripts show it. */
  queue(effects: Effects): string[] {
    const shown: string[] = []
    for (const work of [this.appendOf(effects), this.applyOf(effects)]) {
      if (work === undefined) continue
      shown.push(withReplies(work.text, work.replies))
    }
    return shown
  }

  private appendOf(effects: Effects): Work | undefined {
    const { persist, hardState, waiting } = effects
    if (persist === undefined) return undefined
    const { id } = this.raft
    const { entries, snapshot, sequence } = persist
    if (snapshot !== undefined) this.unstable = snapshot.index + 1
    const first = entries[0]
    if (first !== undefined) this.unstable = Math.min(this.unstable, first.index)
    const commit = hardState !== undefined && hardState.commit > 0 ? ` Commit:${hardState.commit}` : ''
    const vote = hardState !== undefined && hardState.vote > 0 ? ` Vote:${hardState.vote}` : ''
    const head = `${id}->AppendThread MsgStorageAppend Term:${hardState?.term ?? 0} Log:0/0`
    const snap = snapshot === undefined ? '' : `\n  Snapshot: ${snapshotText(snapshot)}`
    const text = `${head}${commit}${vote}${entriesText(entries, '')}${snap}`
    const replies: Parcel[] = waiting.filter(({ kind }) => kind !== 'vote')
    const index = this.raft.lastIndex
    const last = index < this.unstable ? undefined : { index, term: this.raft.termAt(index) as number }
    if (last !== undefined || snapshot !== undefined) {
      const at = `Log:${last?.term ?? 0}/${last?.index ?? 0}`
      const reply = `AppendThread->${id} MsgStorageAppendResp Term:${this.raft.term} ${at}${snap}`
      replies.push({ thread: 'append', to: id, text: reply, sequence, term: this.raft.term, last, upTo: 0 })
    }
    const work = { text, effects, replies }
    this.appendWork.push(work)
    return work
  }

  private applyOf(effects: Effects): Work | undefined {
    const { committed } = effects
    if (committed.length === 0) return undefined
    const { id } = this.raft
    const entries = entriesText(committed, '')
    const text = `${id}->ApplyThread MsgStorageApply Term:0 Log:0/0${entries}`
    const reply = `ApplyThread->${id} MsgStorageApplyResp Term:0 Log:0/0${entries}`
    const upTo = (committed[committed.length - 1] as Entry).index
    const replies: Parcel[] = [{ thread: 'apply', to: id, text: reply, sequence: 0, term: 0, last: undefined, upTo }]
    const work = { text, effects, replies }
    this.applyWork.push(work)
    return work
  }

  take(reply: ThreadReply): void {
    const { raft } = this
    if (reply.thread === 'apply') return raft.applied(reply.upTo)
    const { last } = reply
    const stands = last !== undefined && last.index >= this.unstable && raft.termAt(last.index) === last.term
    if (reply.term === raft.term && stands) this.unstable = last.index + 1
    else if (last !== undefined) return
    Raft.stateOf(raft).log.written(reply.sequence)
  }
}
