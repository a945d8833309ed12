// Package readme holds the code of README.md, where it is compiled and run: its
// tests fail if a block there is not a piece of a file here.
package readme
