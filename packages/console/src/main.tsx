import { render } from 'preact'
import { start } from './state/start.js'
import { App } from './ui/app.js'
import './style/base.css'
import './style/layout.css'
import './style/components.css'
import './style/phone.css'

const root = document.getElementById('app')
if (root === null) throw new Error('the page has no place for the console')
root.replaceChildren()
start()
render(<App />, root)
