import { run } from './main.js'

// The file that commands of this package start as a child process.
void run(process.argv.slice(2))
