import { type Mutant, mutantsOf } from '../mutant.js'

/** Bugs of the lock state. */
export const CORE_MUTANTS: readonly Mutant[] = mutantsOf('core', [
  {
    name: 'token-of-request',
    bug: 'The token is drawn when the request arrives, and the queue is not first in, first out',
    profile: 'holders',
    patches: [
      ['state/grants', 'acquire: command,\n', 'acquire: { ...command, drawn: machine.draw() },\n'],
      [
        'state/grants',
        'held: command.locks.map((request, i) => take(places[i], request, id)),',
        'held: command.locks.map((request, i) => take(places[i], request, command.drawn ?? id)),',
      ],
      [
        'state/queue',
        'const node = { waiter, previous: this.#back, next: undefined };',
        'if (this.front !== undefined) {\n            const first = { waiter, previous: undefined, next: this.front };\n            this.front = this.front.previous = first;\n            this.length++;\n            return first;\n        }\n        const node = { waiter, previous: this.#back, next: undefined };',
      ],
    ],
  },
  {
    name: 'last-come-first-served',
    bug: 'The last waiter is served first',
    scenarios: ['Q8', 'Q9'],
    patches: [
      [
        'state/queue',
        'const node = { waiter, previous: this.#back, next: undefined };',
        'if (this.front !== undefined) {\n            const first = { waiter, previous: undefined, next: this.front };\n            this.front = this.front.previous = first;\n            this.length++;\n            return first;\n        }\n        const node = { waiter, previous: this.#back, next: undefined };',
      ],
    ],
  },
  {
    name: 'release-frees-anybody',
    bug: 'A release whose hold has ended frees the hold of another client',
    profile: 'holders',
    patches: [
      [
        'state/hold-commands',
        'function releaseNow(machine, command) {\n    const hold = machine.holds.get(command.hold);',
        'function releaseNow(machine, command) {\n    const hold = machine.holds.get(command.hold) ?? machine.holds.values().next().value;',
      ],
      ['state/hold-commands', 'if (!owns && !knows)', 'if (!owns && !knows && machine.holds.has(command.hold))'],
    ],
  },
  {
    name: 'ended-session-granted',
    bug: 'A waiter whose session ends in the same entry is granted first',
    profile: 'holders',
    patches: [['state/grants', '!machine.canDraw || waiter.session.expiresAt <= machine.now', '!machine.canDraw']],
  },
  {
    name: 'ended-session-waits-on',
    bug: 'The end of a session leaves its waiters in their queues',
    patches: [
      [
        'state/sessions',
        'for (const waiter of [...session.waiters]) {',
        'for (const waiter of [...session.waiters].slice(1)) {',
      ],
    ],
  },
  {
    name: 'repeat-takes-effect',
    bug: 'A retried request takes effect again',
    scenarios: ['Q4', 'Q6'],
    patches: [
      [
        'state/deduplication',
        'return answer === undefined ? undefined : currentAnswer(answer);',
        'return answer?.waiter === undefined ? undefined : currentAnswer(answer);',
      ],
    ],
  },
  {
    name: 'answer-forgotten-early',
    bug: 'An answer is forgotten before its client has acknowledged it',
    scenarios: ['Q6p'],
    profile: 'holders',
    patches: [
      [
        'state/deduplication',
        'answer.result = result;\n    machine.hashAnswer(session, answer).endUpdate();\n    session.answers.set(request, answer);',
        'answer.result = result;\n    for (const [old, one] of session.answers) {\n        if (one.result === undefined)\n            continue;\n        machine.hashAnswer(session, one).beginUpdate();\n        session.answers.delete(old);\n    }\n    machine.hashAnswer(session, answer).endUpdate();\n    session.answers.set(request, answer);',
      ],
    ],
  },
  {
    name: 'refused-answer-not-kept',
    bug: 'The answer to a release is not kept for its retry',
    scenarios: ['Q6'],
    patches: [
      [
        'state/deduplication',
        'if (!session.answers.has(request))\n        remember',
        "if (!session.answers.has(request) && result.kind !== 'released')\n        remember",
      ],
    ],
  },
  {
    name: 'late-acquire-after-cancel',
    bug: 'A cancel that overtakes its acquire leaves no trace, and the acquire takes effect',
    scenarios: ['Q7c'],
    profile: 'holders',
    patches: [
      [
        'state/hold-commands',
        'machine.hashAnswer(session, late).endUpdate();\n        session.answers.set(target, late);',
        '',
      ],
    ],
  },
  {
    name: 'readers-with-own-tokens',
    bug: 'Each shared hold gets its own token, so that one reader locks the others out of the resource',
    scenarios: ['Q12'],
    patches: [
      [
        'state/grants',
        'lock.readers === undefined ? id : lock.readers.generation',
        'lock.readers !== undefined && id < 0 ? lock.readers.generation : id',
      ],
    ],
  },
  {
    name: 'writer-beside-readers',
    bug: 'An exclusive hold is granted beside shared ones',
    scenarios: ['Q11', 'Q12'],
    patches: [
      [
        'state/grants',
        'if (exclusive && lock.readers !== undefined)',
        'if (exclusive && lock.readers !== undefined && lock.readers.holds.size > 1)',
      ],
      ['state/hold-table', 'lock.exclusive === undefined && readers === undefined', 'lock.exclusive === undefined'],
    ],
  },
  {
    name: 'permit-given-in-delay',
    bug: 'A permit is granted again during its lock delay',
    scenarios: ['S24p'],
    patches: [
      ['state/hold-table', 'if (slot !== undefined)\n            lock.semaphore?.busy.occupy(slot);', ''],
      ['state/hold-table', 'if (slot !== undefined)\n            lock.semaphore?.busy.free(slot);', ''],
    ],
  },
  {
    name: 'one-permit-too-many',
    bug: 'A semaphore grants one permit too many',
    scenarios: ['Q14'],
    patches: [['state/grants', 'semaphore.busy.count >= semaphore.size', 'semaphore.busy.count > semaphore.size']],
  },
  {
    name: 'steal-without-event',
    bug: 'A stolen hold ends without an event',
    scenarios: ['Q18'],
    patches: [
      [
        'state/hold-table',
        "machine.events.push({\n        kind: 'freed',\n        hold: hold.id,\n        locks: hold.held,\n        reason: options.reason,",
        "if (options.reason !== 'stolen')\n        machine.events.push({\n        kind: 'freed',\n        hold: hold.id,\n        locks: hold.held,\n        reason: options.reason,",
      ],
    ],
  },
  {
    name: 'steal-untold',
    bug: 'The holder is not notified that its hold was stolen',
    scenarios: ['Q18'],
    patches: [
      [
        'state/hold-commands',
        "reason: 'stolen', delay: true, notify: true",
        "reason: 'stolen', delay: true, notify: false",
      ],
    ],
  },
  {
    name: 'lost-wakeup',
    bug: 'A waiter that leaves the queue does not wake the next one',
    scenarios: ['Q11w'],
    profile: 'holders',
    patches: [['state/waiters', 'machine.markDirty(lock);', 'if (keep)\n            machine.markDirty(lock);']],
  },
  {
    name: 'lease-begins-anew-with-leader',
    bug: 'Every empty entry, such as the first one of a leader, gives all sessions a new TTL',
    scenarios: ['S2'],
    patches: [
      [
        'state/apply',
        'const results = new Array(commands.length);',
        'const results = new Array(commands.length);\n    for (const session of commands.length === 0 ? machine.sessions.values() : []) {\n        machine.hashLease(session).beginUpdate();\n        session.expiresAt = Math.max(session.expiresAt, machine.now + session.ttlMs);\n        machine.hashLease(session).endUpdate();\n    }',
      ],
    ],
  },
  {
    name: 'no-lock-delay',
    bug: 'A hold whose session has expired gets no lock delay',
    scenarios: ['S24d'],
    patches: [['state/sessions', "delay: reason !== 'closed'", "delay: reason === 'operator'"]],
  },
  {
    name: 'persistent-ends-with-session',
    bug: 'A persistent hold ends with its session',
    scenarios: ['Q19'],
    patches: [['state/sessions', 'if (hold.terms.confirmed) {', 'if (hold.terms.confirmed && hold.id < 0) {']],
  },
  {
    name: 'delay-lost-in-snapshot',
    bug: 'Lock delays are not in the snapshot',
    scenarios: ['W1'],
    patches: [
      [
        'state/snapshot-writer',
        'count: delays.size,\n            elements: () => delays.values(),',
        'count: 0,\n            elements: () => [].values(),',
      ],
    ],
  },
  {
    name: 'counter-lost-in-snapshot',
    bug: 'After a snapshot the token counter continues from its highest hold, not from the last grant',
    scenarios: ['Q20', 'W1'],
    patches: [
      ['state/snapshot-reader', 'machine.counter = counter;', ''],
      [
        'state/snapshot-reader',
        'reader.finish();\n    return machine;',
        'reader.finish();\n    for (const id of [...machine.holds.keys(), ...machine.sessions.keys()])\n        machine.counter = Math.max(machine.counter, id);\n    return machine;',
      ],
    ],
  },
  {
    name: 'lease-reset-by-snapshot',
    bug: 'Sessions get a new TTL when a snapshot is read',
    scenarios: ['S3'],
    patches: [
      [
        'state/snapshot-format',
        'const expiresAt = reader.varuint();',
        'const expiresAt = Math.max(reader.varuint(), machine.now + ttlMs);',
      ],
    ],
  },
  {
    name: 'queue-order-lost-in-snapshot',
    bug: 'A snapshot changes the order of waiters',
    scenarios: ['Q8'],
    patches: [
      [
        'state/snapshot-format',
        'joinQueues(machine, waiter);',
        '(machine.late ??= []).unshift(waiter);\n    machine.waiters.set(arrival, waiter);',
      ],
      [
        'state/snapshot-reader',
        'yield* each(reader, 1, (r) => readDelay(r, machine, ids));',
        'for (const waiter of machine.late ?? [])\n        joinQueues(machine, waiter);\n    yield* each(reader, 1, (r) => readDelay(r, machine, ids));',
      ],
    ],
  },
  {
    name: 'answers-lost-in-snapshot',
    bug: 'The kept answers are not in the snapshot, so that a later retry takes effect again',
    scenarios: ['W1'],
    patches: [
      [
        'state/snapshot-format',
        '[...session.answers.values()].sort(',
        '[...session.answers.values()].filter((one) => one.result === undefined).sort(',
      ],
    ],
  },
  {
    name: 'renewed-into-snapshot',
    bug: 'A session that is renewed during a snapshot has its later lease in it',
    patches: [
      [
        'state/snapshot-writer',
        'case HASH_LEASE:\n            case HASH_ACKNOWLEDGED:',
        'case HASH_LEASE:\n                return;\n            case HASH_ACKNOWLEDGED:',
      ],
    ],
  },
  {
    name: 'ended-out-of-snapshot',
    bug: 'A hold that ends during a snapshot is missing from it',
    patches: [
      [
        'state/snapshot-writer',
        'case HASH_HOLD:\n            case HASH_OWNER:\n                return this.#holds.before(owner);',
        '',
      ],
    ],
  },
  {
    name: 'token-forgotten-with-lock',
    bug: 'The token counter belongs to the lock, and is dropped with it',
    scenarios: ['Q20'],
    patches: [
      [
        'state/grants',
        "if (mode === 'exclusive')\n        return { name, mode, token: id };",
        "if (mode === 'exclusive') {\n        lock.drawn = (lock.drawn ?? 0) + 1;\n        return { name, mode, token: lock.drawn };\n    }",
      ],
    ],
  },
  {
    name: 'condition-ignored',
    bug: 'A register is written regardless of its version',
    scenarios: ['W15'],
    patches: [
      [
        'state/registers',
        'ifVersion !== undefined && ifVersion !== version',
        'ifVersion !== undefined && ifVersion !== version && version < 0n',
      ],
    ],
  },
  {
    name: 'fence-ignored',
    bug: 'A register accepts a write under a hold that has ended',
    scenarios: ['Q22'],
    profile: 'holders',
    patches: [
      [
        'state/registers',
        'if (hold === undefined || held === undefined || hold.session === undefined || hold.session.id !== command.session) {',
        'if (hold === undefined || held === undefined)\n        return undefined;\n    if (hold.session === undefined || hold.session.id !== command.session) {',
      ],
    ],
  },
  {
    name: 'floor-ignored',
    bug: 'The counter is not raised to a floor, so a service that is bootstrapped again repeats its tokens',
    scenarios: ['F1'],
    patches: [['state/machine', 'if (floor > this.counter)', 'if (floor > this.counter && floor < 0)']],
  },
  {
    name: 'restored-without-floor',
    bug: 'A raised epoch begins at 0, so a backup that is restored twice moves its persistent holds to the same tokens',
    scenarios: ['F2'],
    patches: [['state/epoch', 'if (floor !== undefined)', 'if (floor !== undefined && floor < 0)']],
  },
])
