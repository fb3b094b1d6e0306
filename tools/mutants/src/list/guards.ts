import { type Mutant, mutantsOf } from '../mutant.js'

/** Bugs at the protected resource. */
export const GUARD_MUTANTS: readonly Mutant[] = mutantsOf('fence', [
  {
    name: 'mark-not-raised-on-open',
    bug: 'Opening a resource does not raise its mark: a late write of an earlier holder gets between reading and writing',
    scenarios: ['A4g'],
    profile: 'holders',
    patches: [
      [
        'cas/object',
        '(now.mark === token ? undefined : { ...now, mark: token })',
        'now.mark === token ? undefined : undefined',
      ],
    ],
  },
  {
    name: 'stale-token-accepted',
    bug: 'A token below the mark is accepted',
    scenarios: ['A1g'],
    profile: 'holders',
    patches: [['cas/object', 'if (now.mark <= token)', 'if (now.mark <= token || token > 0n)']],
  },
  {
    name: 'equal-token-refused',
    bug: 'A token equal to the mark is rejected: the comparison is < instead of ≤',
    profile: 'holders',
    patches: [['cas/object', 'if (now.mark <= token)', 'if (now.mark < token)']],
  },
  {
    name: 'check-apart-from-write',
    bug: 'Mark and value are checked in one step and written in another',
    profile: 'holders',
    patches: [
      [
        'cas/object',
        'const answer = await this.#store.write(this.#target.mark, encodeEnvelope(next), version);',
        'const latest = await this.#store.read(this.#target.mark);\n            const answer = await this.#store.write(this.#target.mark, encodeEnvelope(next), latest?.version ?? null);',
      ],
    ],
  },
  {
    name: 'unknown-called-failed',
    bug: 'A write whose answer is lost is reported as one that did not happen',
    profile: 'holders',
    patches: [
      [
        'cas/object',
        'attempts.unknown = { error };',
        "throw new UnavailableError('the write has failed', { cause: error });",
      ],
    ],
  },
  {
    name: 'token-as-double',
    bug: 'Tokens are compared as floating-point numbers, which lose digits above 2^53',
    scenarios: ['Q21s'],
    profile: 'holders',
    patches: [['core:tokens', 'const token = BigInt(text);', 'const token = BigInt(Number(text));']],
  },
  {
    name: 'register-without-fence',
    bug: 'A register is written without the hold that fences it, and without a condition',
    profile: 'holders',
    patches: [
      ['register', 'const fence = { fence: hold, lock: target.lock };', 'const fence = {};'],
      [
        'register',
        'return known?.lock === undefined ? { ifVersion: known?.version ?? 0n } : {};',
        'return known === undefined ? {} : {};',
      ],
    ],
  },
])
