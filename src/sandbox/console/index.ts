export { createConsole } from './console.js';
