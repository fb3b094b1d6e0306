import type { ClientPlatform } from '@leasehold/client'
import type { Doubts } from './database.js'

/** Reports what weakens the guarantees on a server, each warning once. */
export class Warnings {
  readonly #platform: ClientPlatform
  readonly #name: string
  readonly #reported = new Set<string>()

  constructor(platform: ClientPlatform, name: string) {
    this.#platform = platform
    this.#name = name
  }

  of({ role, unreadable, clock, asynchronous }: Doubts): void {
    if (unreadable.length > 0) {
      this.#report(
        'unreadable',
        `the role ${role} cannot call ${unreadable.join(', ')}: a failover that loses grants may go unnoticed`,
        `GRANT EXECUTE ON FUNCTION ${unreadable.join(', ')} TO ${quoted(role)}; if the server does not have them, run ` +
          '`leasehold engines epoch N` after every failover',
      )
    }
    if (clock !== undefined) {
      this.#report(
        'clock',
        `the server's clock says ${clock}, which is implausible: tokens are not raised to it, and could repeat after a loss of data`,
        "set the server's clock",
      )
    }
    if (asynchronous) {
      this.#report(
        'asynchronous',
        `synchronous_commit is off for the role ${role}: the engine sets it to on in its own transactions`,
        `ALTER ROLE ${quoted(role)} SET synchronous_commit = on`,
      )
    }
  }

  #report(kind: string, message: string, hint: string): void {
    if (this.#reported.has(kind)) return
    this.#reported.add(kind)
    this.#platform.report(`warning: ${this.#name}: ${message}`, hint)
  }
}

function quoted(role: string): string {
  return `"${role.replaceAll('"', '""')}"`
}
