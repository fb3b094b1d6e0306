import { Command } from 'commander'
import { count, size } from '../backup/summary.js'
import { print, printJson } from '../output.js'
import { withProgress } from '../progress.js'

interface Options {
  readonly data: string
  readonly takeOver?: boolean
  readonly json?: boolean
}

/** `verify`: checks a data folder that no service uses. */
export function verifyCommand(): Command {
  return new Command('verify')
    .description('check every byte of a data folder that no service is using')
    .requiredOption('--data <dir>', 'the data folder')
    .option('--take-over', 'take the folder from an owner on another machine that you know is dead')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Reads identity, snapshots and log with all checksums, and replays the log. Nothing is repaired. On damage, it exits with
code 74 and names the file and the byte. Members that print the same entry must print the same hash.

Example:
  $ leasehold verify --data ./data`,
    )
    .action(async ({ data, takeOver, json }: Options) => {
      const { verifyFolder } = await import('@leasehold/replica/node')
      const content = await withProgress({ json }, ({ step: steps }) =>
        verifyFolder({ dir: data, takeOver: takeOver === true, progress: steps }),
      )
      const { identity, meta, snapshots, log, commit, index, term, state, counts } = content
      const hash = state.hash()
      if (json === true) {
        const members = meta.members.map(({ name, node }) => {
          return { name, role: meta.configuration.voters.includes(node) ? 'voter' : 'learner' }
        })
        return printJson({ data, ...identity, members, snapshots, log, commit, index, term, hash, counts })
      }
      const newest = snapshots.at(-1)
      print(`${data} is whole`)
      print(
        `  member     ${identity.name}, node ${identity.node}, of cluster ${identity.cluster}, epoch ${identity.epoch}`,
      )
      print(`  snapshots  ${snapshots.length}, the newest after entry ${newest?.index} (${size(newest?.bytes ?? 0)})`)
      const entries = log.first === undefined ? 'no entries' : `entries ${log.first} to ${log.last}`
      print(`  log        ${count(log.files, 'file')}, ${entries}; known as committed: up to ${commit}`)
      if (log.torn)
        print('             its last write was torn before it was acknowledged; the next start truncates it')
      print(`  state      after entry ${index} of term ${term}: hash ${hash}`)
      const parts = Object.entries(counts).map(([words, number]) => count(number, words.slice(0, -1)))
      print(`             ${parts.join(', ')}`)
    })
}
