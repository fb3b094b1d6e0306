// Claims a data folder, prints the outcome, and keeps the folder until it receives a release request or is killed.
import { claimFolder } from '../../dist/node/ownership/claim-folder.js'

const [dir, takeOver] = process.argv.slice(2)
try {
  const owner = await claimFolder(dir, { name: 'child', takeOver: takeOver === 'take-over' })
  console.log(`OWNED ${owner.number}`)
  const watch = setInterval(() => {
    owner.check(({ kind }) => {
      if (kind !== 'lost') return
      clearInterval(watch)
      console.log('LOST')
    })
  }, 500)
  process.stdin.once('data', async () => {
    await owner.release()
    console.log('RELEASED')
    process.exit(0)
  })
} catch (error) {
  console.log(`REFUSED ${error.code} ${error.message} | ${error.hint}`)
}
