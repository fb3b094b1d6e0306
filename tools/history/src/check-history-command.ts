import { parseArgs } from 'node:util'
import { LeaseholdError, parseDuration } from '@leasehold/core'
import {
  checkHistory,
  type CheckResult,
  DEFAULT_BUDGET_MS,
  HistoryError,
  type Model,
  type ModelName,
  modelNamed,
  MODELS,
  toValue,
  type Value,
} from '@leasehold/lab'
import { parseHistory } from './formats/index.js'

const USAGE = `usage: npm run check-history -- --model MODEL [options] FILES…

Says of each file whether its history is linearizable: FILE linearizable | not-linearizable | unknown.

  --model MODEL      ${Object.keys(MODELS).join(', ')}
  --budget TIME      processor time for each lock or register, as in 1500ms or 10s (default ${DEFAULT_BUDGET_MS}ms)
  --permits N        size of the semaphore, where a history does not say it
  --initial VALUE    first value of a register, as JSON (default null)
  --json             one JSON object per file, with counts and the reason
  --quiet            no reasons on the error output

Formats by ending: .log .edn .txt .jsonl (see docs/internals/histories.md).
Exit code: 0 all linearizable, 1 some not or unknown, 2 bad input.
`

const EXIT = { linearizable: 0, undecided: 1, badInput: 2 } as const

interface Settings {
  readonly model: Model
  readonly budgetMs: number
  readonly json: boolean
  readonly quiet: boolean
  readonly files: readonly string[]
}

/** What the command needs of the machine. */
export interface CommandPlatform {
  out(text: string): void
  err(text: string): void
  readText(file: string): Promise<string>
  /** Milliseconds that only grow: of the wall, or of the processor. */
  now(): number
}

/** Runs `check-history` with these arguments and answers its exit code. */
export async function checkHistoryCommand(args: readonly string[], platform: CommandPlatform): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    platform.out(USAGE)
    return EXIT.linearizable
  }
  let settings: Settings
  try {
    settings = readSettings(args)
  } catch (error) {
    platform.err(`${messageOf(error)}\n\n${USAGE}`)
    return EXIT.badInput
  }
  let exit: number = EXIT.linearizable
  for (const file of settings.files) exit = Math.max(exit, await checkFile(file, settings, platform))
  return exit
}

async function checkFile(file: string, settings: Settings, platform: CommandPlatform): Promise<number> {
  const now = () => platform.now()
  const start = now()
  try {
    const operations = parseHistory(file, await platform.readText(file))
    const result = checkHistory(settings.model, operations, { budgetMs: settings.budgetMs, now })
    if (settings.json) reportJson(file, result, settings, Math.round(now() - start), platform)
    else reportText(file, result, settings, platform)
    return result.verdict === 'linearizable' ? EXIT.linearizable : EXIT.undecided
  } catch (error) {
    const line = error instanceof HistoryError && error.line !== undefined ? `:${error.line}` : ''
    platform.err(`${file}${line}: ${messageOf(error)}\n`)
    if (settings.json) platform.out(`${JSON.stringify({ file, error: messageOf(error) })}\n`)
    return EXIT.badInput
  }
}

function reportJson(
  file: string,
  result: CheckResult,
  settings: Settings,
  milliseconds: number,
  platform: CommandPlatform,
): void {
  platform.out(`${JSON.stringify({ file, model: settings.model.name, ...result, milliseconds })}\n`)
}

function reportText(file: string, result: CheckResult, settings: Settings, platform: CommandPlatform): void {
  platform.out(`${file} ${result.verdict}\n`)
  if (settings.quiet) return
  if (result.explanation !== undefined) platform.err(`${indent(result.explanation.text)}\n`)
  if (result.verdict !== 'unknown') return
  for (const { key, operations, reason } of result.undecided) {
    const name = key === '' ? '' : `${key}: `
    platform.err(`  ${name}no answer for ${operations} operations within the limit of ${reason}\n`)
  }
}

function readSettings(args: readonly string[]): Settings {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      model: { type: 'string', short: 'm' },
      budget: { type: 'string' },
      permits: { type: 'string' },
      initial: { type: 'string' },
      json: { type: 'boolean', default: false },
      quiet: { type: 'boolean', default: false },
    },
  })
  if (values.model === undefined || !Object.hasOwn(MODELS, values.model)) {
    throw new HistoryError(`--model is one of ${Object.keys(MODELS).join(', ')}`)
  }
  if (positionals.length === 0) throw new HistoryError('no file to check')
  const model = modelNamed(values.model as ModelName, {
    permits: values.permits === undefined ? undefined : readPermits(values.permits),
    initial: values.initial === undefined ? undefined : readInitial(values.initial),
  })
  const { json, quiet } = values
  return { model, budgetMs: readBudget(values.budget), json, quiet, files: positionals }
}

function readPermits(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new HistoryError(`--permits is a number from 1 to 999999, not ${text}`)
  return Number(text)
}

function readInitial(text: string): Value {
  try {
    return toValue(JSON.parse(text))
  } catch {
    throw new HistoryError(`--initial is JSON, not ${text}`)
  }
}

function readBudget(text: string | undefined): number {
  if (text === undefined) return DEFAULT_BUDGET_MS
  const milliseconds = /^\d+$/.test(text) ? Number(text) : parseDuration(text, '--budget')
  if (milliseconds <= 0) throw new HistoryError(`--budget is more than no time, not ${text}`)
  return milliseconds
}

function indent(text: string): string {
  return text.replace(/^/gm, '  ')
}

function messageOf(error: unknown): string {
  if (error instanceof LeaseholdError || error instanceof Error) return error.message
  return String(error)
}
