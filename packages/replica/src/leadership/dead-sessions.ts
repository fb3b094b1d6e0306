import type { Command, LockState, SessionId } from '@leasehold/core'

/**
 * The sessions that lived in the process that had the folder before this one: they are dead, and are ended before anything
 * else is proposed. What a leader has proposed may be lost with its term, so the list is kept until they are gone.
 */
export class DeadSessions {
  #dead: readonly SessionId[] | undefined

  /** Commands that end those that are left. The first call says which they are: later ones may have living ones beside them. */
  closeCommands(state: LockState): Command[] {
    this.#dead ??= [...state.localSessions()]
    this.#dead = this.#dead.filter((session) => state.machine.sessions.has(session))
    return this.#dead.map((session) => ({
      kind: 'closeSession',
      session,
      by: 'death',
      reason: 'its process has ended',
    }))
  }
}
