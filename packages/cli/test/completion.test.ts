import { spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Command } from 'commander'
import { createProgram } from '../src/program.js'
import { until, Workshop } from './support/cli.js'

const workshop = new Workshop()
const scripts = new Map<string, string>()

const hasShell = (shell: string) => spawnSync(shell, ['-c', 'exit 0']).status === 0
const hasScript = spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux') === true

beforeAll(async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, stdout } = await workshop.run(['completion', shell])
    expect(code).toBe(0)
    const file = join(workshop.folder(), `completion.${shell}`)
    writeFileSync(file, stdout)
    scripts.set(shell, file)
  }
})
afterAll(() => workshop.close())

/** How each shell begins without the settings of a user, reads the script, and says what it would run. */
const BEGINNINGS: Record<string, { start: string; setUp: (file: string) => string }> = {
  bash: {
    start: 'bash --norc --noprofile -i',
    setUp: (file) =>
      `bind 'set enable-bracketed-paste off'; source ${file}; leasehold() { echo "RAN: $*"; }; PS1='NOW> '`,
  },
  zsh: {
    start: 'zsh -f -i',
    setUp: (file) =>
      `autoload -Uz compinit; compinit -u -D; source ${file}; leasehold() { print -r -- "RAN: $*"; }; PS1='NOW> '`,
  },
  fish: {
    start: 'fish --no-config -i',
    setUp: (file) =>
      `source ${file}; function leasehold; echo "RAN: $argv"; end; function fish_prompt; echo 'NOW> '; end`,
  },
}

/** Types into a shell on a terminal, with Tab where `\t` is, and returns the arguments that `leasehold` was run with. */
async function typed(shell: string, keys: string): Promise<string> {
  const { start, setUp } = BEGINNINGS[shell] as (typeof BEGINNINGS)[string]
  const env = { ...process.env, TERM: 'xterm', HOME: workshop.folder() }
  const child = spawn('script', ['-qfec', start, '/dev/null'], { stdio: 'pipe', env, cwd: workshop.folder() })
  const closed = new Promise((resolve) => child.once('close', resolve))
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  try {
    child.stdin.write(`${setUp(scripts.get(shell) as string)}\r`)
    // The settings themselves have the prompt in quotes.
    await until(() => /(?<!['"])NOW> /.test(output), `${shell} was ready`)
    const from = output.length
    child.stdin.write(`${keys}\r`)
    await until(() => /RAN: .*[\r\n]/.test(output.slice(from)), `${shell} ran it`)
    return /RAN: ([^\r\n]*)/.exec(output.slice(from))?.[1]?.trim() ?? ''
  } finally {
    child.kill('SIGKILL')
    await closed
  }
}

describe.each(['bash', 'zsh', 'fish'])('completion in %s', (shell) => {
  test.skipIf(!hasScript || !hasShell(shell))(
    `completes commands, subcommands, options and values (needs ${shell}, and script of util-linux)`,
    async () => {
      expect(await typed(shell, 'leasehold clu\tstat\t--js\t')).toBe('cluster status --json')
      expect(await typed(shell, 'leasehold serve --log-l\tsil\t')).toBe('serve --log-level silent')
      expect(await typed(shell, 'leasehold guard s\tmys\t--fo\tcol\t')).toBe('guard sql mysql --form column')
    },
  )
})

describe('completion', () => {
  test.skipIf(!hasShell('bash'))('completes every command and every option of the program (needs bash)', () => {
    const file = scripts.get('bash') as string
    const complete = (...words: string[]): string[] => {
      const list = ['leasehold', ...words].map((word) => `'${word}'`).join(' ')
      const script = `source ${file}; COMP_WORDS=(${list}); COMP_CWORD=${words.length}; _leasehold; printf '%s\\n' "\${COMPREPLY[@]}"`
      const { stdout } = spawnSync('bash', ['-c', script], { encoding: 'utf8' })
      return stdout.split('\n').filter((line) => line !== '')
    }
    const visit = (command: Command, path: string[]): number => {
      const options = command.options.map(({ long }) => long as string)
      expect(complete(...path, '--')).toEqual(expect.arrayContaining(options))
      const children = command.commands.map((child) => child.name())
      if (children.length > 0) expect(complete(...path, '').sort()).toEqual(children.sort())
      return command.commands.reduce((sum, child) => sum + visit(child, [...path, child.name()]), 1)
    }
    expect(visit(createProgram({ code: 0 }), [])).toBeGreaterThan(25)
  })

  test('treats a lock with the name of a command as a lock', () => {
    const script = scripts.get('bash') as string
    const { stdout } = spawnSync(
      'bash',
      [
        '-c',
        `source ${script}; COMP_WORDS=(leasehold inspect cluster ''); COMP_CWORD=3; _leasehold; echo "\${COMPREPLY[*]}"`,
      ],
      { encoding: 'utf8' },
    )
    expect(stdout).toBe('\n')
  })

  test('exits with 64 for another shell, and lists the supported ones', async () => {
    const { code, stderr } = await workshop.run(['completion', 'tcsh'])
    expect([code, stderr]).toEqual([64, expect.stringContaining('bash, zsh, fish')])
  })
})
