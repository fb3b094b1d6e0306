import type { Command } from 'commander'
import type { Shell } from './shells.js'
import { type OptionSpec, type Spec, specsOf } from './spec.js'

/** Returns the completion script of a shell. */
export function completionScript(program: Command, shell: Shell): string {
  const specs = specsOf(program)
  if (shell === 'bash') return bash(specs)
  return shell === 'zsh' ? zsh(specs) : fish(specs)
}

/** Quotes a text for all three shells. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

function words(specs: readonly OptionSpec[]): string[] {
  return specs.flatMap((option) => option.words)
}

/** Returns the pattern of all command paths: `'cluster'|'cluster add'|…`. */
function paths(specs: readonly Spec[]): string {
  return specs
    .filter(({ path }) => path.length > 0)
    .map(({ path }) => quoted(path.join(' ')))
    .join('|')
}

/** Returns the `case` lines that complete option values. Options with the same completion share a line. */
function valueCases(options: readonly OptionSpec[], actionOf: (value: NonNullable<OptionSpec['value']>) => string) {
  const cases = new Map<string, string[]>()
  for (const { words: names, value } of options) {
    if (value === undefined) continue
    const action = actionOf(value)
    cases.set(action, [...(cases.get(action) ?? []), ...names])
  }
  if (cases.size === 0) return []
  const lines = [...cases].map(([action, names]) => `        ${names.join('|')}) ${action} ;;`)
  return ['      case "$previous" in', ...lines, '      esac']
}

function bash(specs: readonly Spec[]): string {
  const cases = specs.map((spec) => {
    const values = valueCases(spec.options, (value) =>
      value === 'file'
        ? 'chosen=1 files=1'
        : value === 'any'
          ? 'chosen=1'
          : `chosen=1 words=${quoted(value.join(' '))}`,
    )
    const first = [
      ...spec.commands.map(({ word }) => word),
      ...(Array.isArray(spec.argument) ? (spec.argument as string[]) : []),
    ]
    return [
      `    ${quoted(spec.path.join(' '))})`,
      ...values,
      `      options=${quoted(words(spec.options).join(' '))}`,
      `      first=${quoted(first.join(' '))}`,
      ...(spec.argument === 'file' ? ['      [[ $chosen ]] || files=1'] : []),
      '      ;;',
    ].join('\n')
  })
  return `# bash completion of leasehold: eval "$(leasehold completion bash)"
_leasehold() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]}
  local path='' words='' options='' first='' files='' chosen='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ \${COMP_WORDS[i]} == -- ]] && { compopt -o default 2>/dev/null; return; }
    case "\${path:+$path }\${COMP_WORDS[i]}" in
      ${paths(specs)}) path="\${path:+$path }\${COMP_WORDS[i]}" ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  if [[ ! $chosen ]]; then
    if [[ $current == -* ]]; then words=$options files=''; else words=$first; fi
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [[ $files ]]; then
    compopt -o filenames 2>/dev/null
    local IFS=$'\\n'
    COMPREPLY+=($(compgen -f -- "$current"))
  fi
}
complete -F _leasehold leasehold
`
}

function zsh(specs: readonly Spec[]): string {
  const described = (word: string, text: string): string => quoted(`${word.replaceAll(':', '\\:')}:${text}`)
  const cases = specs.map((spec) => {
    const values = valueCases(spec.options, (value) => {
      if (value === 'file') return '_files; return'
      return value === 'any' ? 'return' : `compadd -- ${value.map(quoted).join(' ')}; return`
    })
    const options = spec.options.flatMap(({ words: names, text }) => names.map((word) => described(word, text)))
    const first = [
      ...spec.commands.map(({ word, text }) => described(word, text)),
      ...(Array.isArray(spec.argument) ? spec.argument.map(quoted) : []),
    ]
    return [
      `    ${quoted(spec.path.join(' '))})`,
      ...values,
      `      options=(${options.join(' ')})`,
      `      first=(${first.join(' ')})`,
      ...(spec.argument === 'file' ? ['      files=1'] : []),
      '      ;;',
    ].join('\n')
  })
  return `#compdef leasehold
# zsh completion of leasehold: eval "$(leasehold completion zsh)", after compinit
_leasehold() {
  local current=$words[CURRENT] previous=$words[CURRENT-1] trail='' next files=''
  local -a options first
  integer i
  for ((i = 2; i < CURRENT; i++)); do
    if [[ $words[i] == -- ]]; then _files; return; fi
    next="\${trail:+$trail }$words[i]"
    case "$next" in
      ${paths(specs)}) trail=$next ;;
    esac
  done
  case "$trail" in
${cases.join('\n')}
  esac
  if [[ $current == -* ]]; then
    _describe option options
  else
    (( $#first )) && _describe command first
    [[ -n $files ]] && _files
  fi
}
compdef _leasehold leasehold
`
}

function fish(specs: readonly Spec[]): string {
  const lines = specs.flatMap((spec) => {
    const condition = `-n ${quoted(`__leasehold_at "${spec.path.map((word) => ` ${word}`).join('')}"`)}`
    const commands = spec.commands.map(
      ({ word, text }) => `complete -c leasehold ${condition} -a ${word} -d ${quoted(text)}`,
    )
    const values =
      spec.argument === undefined
        ? []
        : [
            `complete -c leasehold ${condition} ${spec.argument === 'file' ? '-F' : `-a ${quoted(spec.argument.join(' '))}`}`,
          ]
    const options = spec.options.map(({ words: names, text, value }) => {
      const flags = names
        .map((word) => (word.startsWith('--') ? `-l ${word.slice(2)}` : `-s ${word.slice(1)}`))
        .join(' ')
      const argument =
        value === undefined
          ? ''
          : value === 'file'
            ? ' -r -F'
            : value === 'any'
              ? ' -x'
              : ` -x -a ${quoted(value.join(' '))}`
      return `complete -c leasehold ${condition} ${flags}${argument} -d ${quoted(text)}`
    })
    return [...commands, ...values, ...options]
  })
  return `# fish completion of leasehold: leasehold completion fish | source
function __leasehold_at
  set -l path
  for word in (commandline -opc)[2..]
    switch "$path $word"
      case ${specs
        .filter(({ path }) => path.length > 0)
        .map(({ path }) => quoted(` ${path.join(' ')}`))
        .join(' ')}
        set path "$path $word"
    end
  end
  test "$path" = "$argv[1]"
end
complete -c leasehold -f
${lines.join('\n')}
`
}
