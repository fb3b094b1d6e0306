import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { mergeConfig } from 'vitest/config'
import base from '../../../../vitest.config.js'
import { MUTANTS } from './list.js'

const source = fileURLToPath(new URL('../../src/', import.meta.url))
const mutant = MUTANTS[Number(process.env.MUTANT)]

/** The tests of the client, with one rule broken in the code: MUTANT is its place in the list. */
export default mergeConfig(base, {
  root: fileURLToPath(new URL('../../../../', import.meta.url)),
  plugins: [
    {
      name: 'mutant',
      enforce: 'pre',
      load(id: string) {
        if (!mutant || id.split('?')[0] !== source + mutant.file) return undefined
        const text = readFileSync(source + mutant.file, 'utf8')
        if (!text.includes(mutant.find)) throw new Error(`${mutant.file} has no ${mutant.find}`)
        return text.replace(mutant.find, () => mutant.replace)
      },
    },
  ],
})
