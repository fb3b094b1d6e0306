import { checkName, covers, InvalidError } from '@leasehold/core'
import type { AccessVerb } from './authorize.js'

export const VERBS = ['acquire', 'read', 'steal', 'admin'] as const satisfies readonly AccessVerb[]

/** One access rule: it allows these verbs on the names below this prefix. */
export interface AccessRule {
  /** Whole path segments: `billing` matches `billing` and `billing/x`, not `billing2`. `''` matches everything. */
  readonly prefix: string
  readonly verbs: readonly AccessVerb[]
}

const HINT =
  "write PREFIX:VERB,VERB with verbs of acquire, read, steal, admin, such as 'billing:acquire,read'; '*' is everything"
const EVERYTHING = '*'

/**
 * Parses `billing:acquire,read`, or `*:read` for all names.
 * @throws InvalidError
 */
export function parseRule(text: string): AccessRule {
  const at = text.lastIndexOf(':')
  const name = text.slice(0, at)
  const verbs = text.slice(at + 1).split(',')
  const odd = verbs.find((verb) => !(VERBS as readonly string[]).includes(verb))
  if (at < 1 || odd !== undefined) {
    throw new InvalidError(`not an access rule: ${JSON.stringify(text.slice(0, 200))}`, { hint: HINT })
  }
  const prefix = name === EVERYTHING ? '' : name.replace(/\/$/, '')
  if (prefix !== '') checkName(prefix)
  return { prefix, verbs: [...new Set(verbs)] as AccessVerb[] }
}

export function formatRule({ prefix, verbs }: AccessRule): string {
  return `${prefix === '' ? EVERYTHING : prefix}:${verbs.join(',')}`
}

/** Whether any rule allows this verb on this name; the name `''` is the whole service. */
export function allows(rules: readonly AccessRule[], verb: AccessVerb, name: string): boolean {
  return rules.some(
    (rule) => rule.verbs.includes(verb) && (rule.prefix === '' || (name !== '' && covers(rule.prefix, name))),
  )
}

/** Whether any rule has this verb, for whatever name: enough if a handle proves the rest. */
export function hasVerb(rules: readonly AccessRule[], verb: AccessVerb): boolean {
  return rules.some((rule) => rule.verbs.includes(verb))
}
