import { isIPv6 } from 'node:net'
import { readFileSync } from 'node:fs'
import { DEFAULT_LISTEN, InvalidError } from '@leasehold/core'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { numberOf } from '../argument-parsers.js'
import type { Listen } from './options.js'

const EPOCH_MAX = 32_767
const RATE_MAX = 1_000_000
const TOKEN_START_MAX = 1_000_000

/** One setting of `serve`: an option, an environment variable, and a field of the config file. */
interface Setting {
  /** With `<…>`, the setting takes a value; without, it is a switch. */
  readonly flags: string
  readonly text: string
  readonly read?: (text: string) => unknown
  readonly fallback?: { readonly value: unknown; readonly text: string }
  readonly choices?: readonly string[]
}

const rate = (what: string) => numberOf(what, 1, RATE_MAX)

export const SETTINGS: readonly Setting[] = [
  {
    flags: '--data <dir>',
    text: 'data folder; created if it does not exist',
    fallback: { value: './data', text: './data' },
  },
  {
    flags: '--listen <host:port>',
    text: 'address for clients; port 0 chooses a free port',
    read: readListen,
    fallback: { value: readListen(DEFAULT_LISTEN), text: DEFAULT_LISTEN },
  },
  { flags: '--advertise-url <url>', text: 'URL at which clients reach the service, if it is not the listen address' },
  {
    flags: '--epoch <n>',
    text: 'first epoch of an empty service; above that of the service it replaces',
    read: numberOf('the epoch', 1, EPOCH_MAX),
  },
  {
    flags: '--token-start <n>',
    text: 'for demonstrations: tokens of an empty service start above this number, not above the clock, and repeat if the folder is emptied',
    read: numberOf('the token start', 0, TOKEN_START_MAX),
  },
  { flags: '--name <name>', text: 'name of this member of a cluster' },
  { flags: '--peer-listen <host:port>', text: 'address for the other members' },
  {
    flags: '--cluster <list>',
    text: 'all members, the same list on each: n1=HOST:PORT,n2=HOST:PORT,n3=HOST:PORT',
  },
  {
    flags: '--repair',
    text: 'rejoin the cluster with the data of the other members if the data folder is damaged or empty',
  },
  { flags: '--allow-anonymous', text: 'listen on a non-loopback address without authentication' },
  {
    flags: '--allow-origins <list>',
    text: 'origins of web pages that may use the service, such as https://tools.example,https://app.example:8443',
    read: readOrigins,
  },
  { flags: '--take-over', text: 'take the data folder from an owner on another machine that you know is dead' },
  { flags: '--keys <file>', text: 'require API keys; their hashes are in this file (leasehold key create)' },
  { flags: '--jwt-jwks <file or url>', text: 'accept JSON Web Tokens signed by a key of this set' },
  { flags: '--jwt-issuer <text>', text: 'required issuer of the tokens' },
  { flags: '--jwt-audience <text>', text: 'required audience of the tokens' },
  { flags: '--tls-cert <file>', text: 'serve https with this certificate (PEM); reloaded when it changes' },
  { flags: '--tls-key <file>', text: 'key of the certificate (PEM)' },
  { flags: '--tls-client-ca <file>', text: 'require client certificates signed by one of these CAs' },
  { flags: '--peer-tls-cert <file>', text: 'certificate for connections between members (PEM)' },
  { flags: '--peer-tls-key <file>', text: 'key of that certificate (PEM)' },
  { flags: '--peer-tls-ca <file>', text: 'CAs that sign the certificates of members' },
  {
    flags: '--peer-tls-allowed-names <list>',
    text: 'certificates of members must also have one of these names, such as n1.example,*.members.example',
  },
  {
    flags: '--allow-insecure-peers',
    text: 'listen for members beyond this machine without TLS: every program that reaches that port can read and change everything',
  },
  {
    flags: '--accept-repair',
    text: 'let a member that lost its data rejoin (its --repair): the holder of its certificate gets the whole state and a vote',
  },
  { flags: '--limit-requests <n>', text: 'requests per second of one client', read: rate('the limit') },
  {
    flags: '--limit-renewals <n>',
    text: 'renewals per second of one client, counted separately',
    read: rate('the limit'),
  },
  { flags: '--limit-sessions <n>', text: 'sessions of one client', read: rate('the limit') },
  { flags: '--limit-waiters <n>', text: 'waiting acquires of one client', read: rate('the limit') },
  { flags: '--audit <file>', text: 'audit log of acquires, steals and refusals, as JSON lines; - is standard output' },
  {
    flags: '--log-level <level>',
    text: 'lowest level of the log on stderr',
    choices: ['info', 'warn', 'error', 'silent'],
    fallback: { value: 'info', text: 'info' },
  },
]

/** `--peer-listen <host:port>` → `peer-listen`. */
function longName({ flags }: Setting): string {
  return (flags.split(' ')[0] as string).slice(2)
}

/** `peer-listen` → `peerListen`. */
function fieldName(setting: Setting): string {
  return longName(setting).replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())
}

export function environmentName(setting: Setting): string {
  return `LEASEHOLD_${longName(setting).replaceAll('-', '_').toUpperCase()}`
}

const ON = new Set(['1', 'true', 'yes', 'on'])
const OFF = new Set(['', '0', 'false', 'no', 'off'])

/** Undefined: the variable is set to something that is neither. */
function isOn(setting: Setting): boolean | undefined {
  const text = (process.env[environmentName(setting)] ?? '').toLowerCase()
  return ON.has(text) ? true : OFF.has(text) ? false : undefined
}

/** @throws InvalidError for a switch whose environment variable is neither on nor off: a typing error must not open a door */
export function checkEnvironment(): void {
  for (const setting of SETTINGS) {
    if (!isSwitch(setting) || isOn(setting) !== undefined) continue
    const name = environmentName(setting)
    throw new InvalidError(`${name} is ${JSON.stringify(process.env[name]?.slice(0, 100))}`, {
      hint: `use one of ${[...ON].join(', ')} or ${[...OFF].slice(1).join(', ')}`,
    })
  }
}

function isSwitch({ flags }: Setting): boolean {
  return !flags.includes('<')
}

/** Adds every setting to the command, with its environment variable. */
export function addSettings(command: Command): Command {
  for (const setting of SETTINGS) {
    const option = new Option(setting.flags, setting.text)
    // For commander, any text switches a switch on.
    if (!isSwitch(setting) || isOn(setting) === true) option.env(environmentName(setting))
    if (setting.choices !== undefined) option.choices(setting.choices)
    if (setting.read !== undefined) option.argParser(setting.read)
    if (setting.fallback !== undefined) option.default(setting.fallback.value, setting.fallback.text)
    command.addOption(option)
  }
  return command
}

/**
 * Applies the settings of a config file, except those given by an option or the environment.
 * @throws InvalidError, which names the file and the field
 */
export function applyConfig(command: Command, file: string): void {
  const fields = readFields(file)
  const known = new Map(SETTINGS.map((setting) => [fieldName(setting), setting]))
  for (const [field, value] of Object.entries(fields)) {
    if (field === '$schema') continue
    const setting = known.get(field)
    if (setting === undefined) {
      throw new InvalidError(`${file}: there is no setting ${JSON.stringify(field)}`, {
        hint: `the settings are ${[...known.keys()].join(', ')}`,
      })
    }
    const source = command.getOptionValueSource(field)
    if (source === 'cli' || source === 'env') continue
    command.setOptionValueWithSource(field, valueOf(file, field, setting, value), 'config')
  }
}

function readFields(file: string): object {
  let content: unknown
  try {
    content = JSON.parse(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw new InvalidError(`cannot read the config file ${file}: ${(cause as Error).message}`, { cause })
  }
  if (typeof content === 'object' && content !== null && !Array.isArray(content)) return content
  throw new InvalidError(`${file} is not a config file: it must contain one JSON object`)
}

function valueOf(file: string, field: string, setting: Setting, value: unknown): unknown {
  const wrong = (expected: string): InvalidError =>
    new InvalidError(`${file}: ${field} is ${expected}, not ${JSON.stringify(value)?.slice(0, 100)}`)
  if (isSwitch(setting)) {
    if (typeof value !== 'boolean') throw wrong('true or false')
    return value ? true : undefined
  }
  if (typeof value !== 'string' && typeof value !== 'number') throw wrong('a string or a number')
  const text = String(value)
  if (setting.choices?.includes(text) === false) throw wrong(`one of ${setting.choices.join(', ')}`)
  try {
    return setting.read === undefined ? text : setting.read(text)
  } catch (error) {
    if (error instanceof InvalidArgumentError) throw wrong(`wrong (${error.message})`)
    throw error
  }
}

/** Returns the JSON Schema of the config file. */
export function configSchema(): object {
  const properties = SETTINGS.map((setting) => {
    const description = `${setting.text}. Environment: ${environmentName(setting)}`
    const type = isSwitch(setting)
      ? { type: 'boolean' }
      : setting.choices === undefined
        ? { type: ['string', 'number'] }
        : { enum: setting.choices }
    const fallback = setting.fallback === undefined ? {} : { default: setting.fallback.text }
    return [fieldName(setting), { description, ...type, ...fallback }]
  })
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Settings of leasehold serve',
    type: 'object',
    additionalProperties: false,
    properties: { $schema: { type: 'string' }, ...Object.fromEntries(properties) },
  }
}

/** Parses `127.0.0.1:4100`, `[::1]:4100`, `localhost:0`. */
export function readListen(text: string): Listen {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  if (host === undefined || port > 65_535 || (match?.[1] !== undefined && !isIPv6(host))) {
    throw new InvalidArgumentError('write HOST:PORT, such as 127.0.0.1:4100 or [::1]:4100.')
  }
  return { host, port }
}

/** Parses a list of origins, as browsers send them: `https://tools.example,http://127.0.0.1:8080`. */
export function readOrigins(text: string): readonly string[] {
  return text.split(',').map((part) => {
    const given = part.trim()
    const url = URL.canParse(given) && !given.includes('*') ? new URL(given) : undefined
    const isWeb = url?.protocol === 'http:' || url?.protocol === 'https:'
    if (url !== undefined && isWeb && url.href === `${url.origin}/` && !/[?#]$/.test(given)) return url.origin
    throw new InvalidArgumentError(
      `${JSON.stringify(given.slice(0, 80))} is not an origin: write http:// or https://, a host and optionally a port, such as https://tools.example.`,
    )
  })
}
