import { type Duration, InvalidError } from '@leasehold/core'
import { createLocks, type Locks, type LocksOptions } from './locks.js'

export { currentHold, Locked, type LockedDecorator, type LockedNames, type LockedOptions } from './decorator.js'

/** The injection token of the client: `constructor(@Inject(LOCKS) readonly locks: Locks)`. */
export const LOCKS = Symbol.for('leasehold.locks')

export interface LeaseholdModuleOptions extends LocksOptions {
  /** Default: `LEASEHOLD_URL`, or http://127.0.0.1:4100. */
  readonly url?: string
  /** An existing client, instead of `url` and options. It is closed with the application. */
  readonly locks?: Locks
  /** How long the shutdown waits for holds to be released. Default 10 s. */
  readonly drain?: Duration
}

/** Closes the client at the end of the shutdown: Nest calls it when no request is left and none can arrive. */
class LocksLifetime {
  readonly #locks: Locks
  readonly #drain: Duration

  constructor(locks: Locks, drain: Duration) {
    this.#locks = locks
    this.#drain = drain
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#locks.close({ drain: this.#drain })
  }
}

/**
 * One client for a Nest application, injected as {@link LOCKS}, and closed with it. A dynamic module is a plain object, so
 * Nest itself is not imported.
 * @example
 * \@Module({ imports: [LeaseholdModule.forRoot({ url: 'http://127.0.0.1:4100' })], controllers: [Invoices] })
 * class AppModule {}
 */
// biome-ignore lint/complexity/noStaticOnlyClass: Nest names modules by their class.
export class LeaseholdModule {
  static forRoot(options: LeaseholdModuleOptions = {}) {
    const { url, locks: given, drain = '10s', ...client } = options
    if (given !== undefined && (url !== undefined || Object.keys(client).length > 0)) {
      throw new InvalidError('LeaseholdModule takes a client (locks), or url and options to make one, not both')
    }
    return {
      module: LeaseholdModule,
      global: true,
      providers: [
        { provide: LOCKS, useFactory: () => given ?? createLocks(url, client) },
        { provide: LocksLifetime, useFactory: (locks: Locks) => new LocksLifetime(locks, drain), inject: [LOCKS] },
      ],
      exports: [LOCKS],
    }
  }
}
