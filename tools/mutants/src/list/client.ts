import { type Mutant, mutantsOf } from '../mutant.js'

/** Bugs of the client. */
export const CLIENT_MUTANTS: readonly Mutant[] = mutantsOf('client', [
  {
    name: 'receipt-time-deadline',
    bug: 'The lease is counted from the arrival of the answer',
    scenarios: ['S13r'],
    patches: [
      [
        'lease/lease-keeper',
        'this.#attempts--;\n            this.#acknowledged(now);',
        'this.#attempts--;\n            this.#acknowledged(this.#elapsed.now());',
      ],
    ],
  },
  {
    name: 'margin-ignored',
    bug: 'The deadline leaves no margin for clocks that run at different rates',
    scenarios: ['S13d'],
    patches: [['lease/lease-keeper', 'options.ttlMs - options.marginMs', 'options.ttlMs']],
  },
  {
    name: 'monotonic-clock-only',
    bug: 'Deadlines use only the monotonic clock, which stops during a suspend',
    scenarios: ['S10'],
    patches: [['lease/elapsed', 'Math.max(byMonotonic, byWall, 0)', 'Math.max(byMonotonic, 0)']],
  },
  {
    name: 'wall-clock-only',
    bug: 'Deadlines use only the wall clock, which may be set back',
    scenarios: ['S13w'],
    patches: [
      ['lease/elapsed', 'Math.max(byMonotonic, byWall, 0)', 'Math.max(byWall, 0)'],
      [
        'lease/elapsed',
        'byMonotonic >= REBASE_MS || Math.abs(byWall - byMonotonic) > DIVERGED_MS',
        'byWall - byWall > DIVERGED_MS',
      ],
    ],
  },
  {
    name: 'timer-only',
    bug: 'Only a timer checks the deadline, and it fires late after a pause',
    scenarios: ['S14', 'S10'],
    patches: [['lease/lease-keeper', 'if (this.#elapsed.now() < this.#deadline)', 'if (this.#acquiring >= 0)']],
  },
  {
    name: 'late-acknowledgement-revives',
    bug: 'A renewal that is acknowledged after the deadline makes the hold held again',
    scenarios: ['S10r'],
    profile: 'holders',
    patches: [
      [
        'lease/lease-keeper',
        'if (!this.check() || sentAt <= this.#ackedSentAt)',
        'if (this.#ended || sentAt <= this.#ackedSentAt)',
      ],
      [
        'lease/lease-keeper',
        'this.#ackedSentAt = sentAt;\n        this.#nextAttemptAt',
        'this.#ackedSentAt = this.#elapsed.now() < this.#deadline ? sentAt : this.#elapsed.now();\n        this.#nextAttemptAt',
      ],
    ],
  },
  {
    name: 'renewal-counts-when-sent',
    bug: 'A renewal counts when it is sent, whether or not the service receives it',
    scenarios: ['S13', 'S14'],
    patches: [['lease/lease-keeper', 'this.#attempts++;', 'this.#attempts++;\n        this.#acknowledged(now);']],
  },
  {
    name: 'released-too-late-here',
    bug: 'A hold counts as held until its release is acknowledged',
    profile: 'holders',
    patches: [
      [
        'hold/hold',
        "this.#end('released');\n        return this.#host.release(this);",
        "return this.#host.release(this).finally(() => this.#end('released'));",
      ],
    ],
  },
  {
    name: 'abort-leaves-grant',
    bug: 'An acquire that was aborted is not undone at the service',
    profile: 'holders',
    patches: [
      [
        'protocol/session-requests',
        'this.#open.drop(pending.number);\n        this.#cancel(pending.number);',
        'this.#closeNumber(pending.number);',
      ],
    ],
  },
  {
    name: 'number-reused-late',
    bug: 'A retried acquire gets a new number after a reconnect',
    scenarios: ['Q4'],
    patches: [
      [
        'protocol/session-requests',
        'request.sendings++;\n        request.lastAck = ack;\n        this.wire.command(request.command(ack),',
        'const again = request.sent && request instanceof PendingAcquire;\n        request.sendings++;\n        request.lastAck = ack;\n        const sending = request.command(ack);\n        this.wire.command(again ? { ...sending, request: this.#open.take() } : sending,',
      ],
    ],
  },
  {
    name: 'lost-push-not-made-good',
    bug: 'A push on a new connection counts as if none had been lost before',
    scenarios: ['Q18b'],
    profile: 'holders',
    patches: [['protocol/change-log', 'if (this.#synced)', 'if (this.#synced || change.number > 0)']],
  },
  {
    name: 'changes-not-fetched',
    bug: 'Pushes that the client missed while it was disconnected are not fetched',
    scenarios: ['Q18a'],
    profile: 'holders',
    patches: [
      [
        'protocol/session-renewals',
        'const fresh = this.#changes.renewed(result.changes);',
        'const fresh = this.#changes.renewed(result.changes).slice(0, 0);',
      ],
    ],
  },
  {
    name: 'open-request-acknowledged',
    bug: 'The client acknowledges requests whose answers it has not received',
    profile: 'holders',
    patches: [
      [
        'protocol/request-window',
        'return { lowest: this.#lowest, also };',
        'return { lowest: Math.max(this.#lowest, this.#next - 1), also };',
      ],
    ],
  },
  {
    name: 'open-requests-dropped',
    bug: 'Requests without an answer are not resent after a reconnect',
    scenarios: ['Q4', 'Q6'],
    patches: [
      ['protocol/session-requests', 'for (const request of this.#open.values())\n            this.#send(request);', ''],
    ],
  },
  {
    name: 'older-epoch-accepted',
    bug: 'A session continues at a service that was restored to another epoch',
    scenarios: ['W2e'],
    patches: [
      [
        'protocol/protocol-engine',
        'restored || session.identity.epoch !== welcome.epoch',
        'session.identity.epoch > welcome.epoch',
      ],
    ],
  },
  {
    name: 'watch-starts-over',
    bug: 'A watch goes back to its first event after a reconnect',
    profile: 'holders',
    patches: [['protocol/stream-watch', 'this.#cursor = cursor;', '']],
  },
  {
    name: 'watch-skips',
    bug: 'After a reconnect a watch starts at the present, and skips events',
    profile: 'holders',
    patches: [
      [
        'protocol/stream-watch',
        'from: this.#cursor };',
        '...(this.asked ? {} : { from: this.#cursor }), ...((this.asked = true) && {}) };',
      ],
    ],
  },
])
