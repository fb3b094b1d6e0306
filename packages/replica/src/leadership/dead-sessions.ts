import type { Command, LockState, SessionId } from '@leasehold/core'

/**
 * The sessions of the process that owned the folder before. That process is dead, so they are closed before anything else is
 * proposed. A proposal may be lost with its term, so the list is kept until the sessions are closed.
 */
export class DeadSessions {
  #dead: readonly SessionId[] | undefined

  /** Returns the commands that close the remaining ones. The first call determines the list, since new sessions may follow. */
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
