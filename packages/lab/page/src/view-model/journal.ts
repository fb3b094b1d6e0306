import { isTelling, sentenceOf, words } from '@leasehold/lab/render/story'
import type { Play } from '@leasehold/lab/scenarios/index'
import type { TimelineEvent } from '@leasehold/lab/world/index'
import { tokenText } from './token-text.js'

export type Tone = 'plain' | 'fault' | 'hand' | 'role' | 'refused' | 'violation'

export interface Entry {
  readonly number: number
  /** Second of the scene. */
  readonly at: number
  readonly who: string
  readonly text: string
  readonly tone: Tone
}

/** Entries that are kept. */
const ENTRIES_MAX = 400

/** What a reader should be told, newest last. */
export class Journal {
  readonly entries: Entry[] = []
  count = 0

  readonly #play: Play

  constructor(play: Play) {
    this.#play = play
    play.world.timeline.onEvent((event) => this.#hear(event))
  }

  /** `atUs`: when it was, if that is not now; it stands among what happened then. */
  add(who: string, text: string, tone: Tone, atUs = this.#play.world.nowUs): void {
    const at = this.#play.at(atUs)
    const after = this.entries.findLastIndex((entry) => entry.at <= at)
    this.entries.splice(after + 1, 0, { number: ++this.count, at, who, text, tone })
    if (this.entries.length > ENTRIES_MAX) this.entries.shift()
  }

  #hear(event: TimelineEvent): void {
    const moment = { at: this.#play.at(event.atUs), ...event }
    // The simulation says itself what members are to each other.
    if (event.kind === 'process' || !isTelling(moment)) return
    const who = event.kind === 'message' ? event.from : event.kind === 'resource' ? event.resource : whoOf(event)
    // Reads are many, and nothing that anybody waits for.
    if (event.kind === 'resource' && event.accepted && event.action === 'read') return
    this.add(who, words(sentenceOf(moment, tokenText), tokenText), toneOf(event))
  }
}

function whoOf(event: TimelineEvent): string {
  return 'who' in event && typeof event.who === 'string' ? event.who : ''
}

function toneOf(event: TimelineEvent): Tone {
  if (event.kind === 'fault') return 'fault'
  if (event.kind === 'resource' && !event.accepted) return 'refused'
  if (event.kind === 'client' && event.text.includes('is refused')) return 'refused'
  return 'plain'
}
