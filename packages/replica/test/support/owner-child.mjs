// Claims a data folder, says how it went, and keeps it until it is told to release it, or is killed.
import { claimFolder } from '../../dist/node/owner.js'

const [dir, takeOver] = process.argv.slice(2)
const onLost = () => console.log('LOST')
try {
  const owner = await claimFolder(dir, { name: 'child', takeOver: takeOver === 'take-over', onLost })
  console.log(`OWNED ${owner.number}`)
  process.stdin.once('data', async () => {
    await owner.release()
    console.log('RELEASED')
    process.exit(0)
  })
} catch (error) {
  console.log(`REFUSED ${error.code} ${error.message} | ${error.hint}`)
}
