// Program mutation breaks the agent on purpose, one break at a time in a copy of the repository, and runs
// the test that should notice. It prints a table of the breaks and of the test that caught each, and fails if
// one was not caught.
//
//	make mutations               # all breaks
//	make mutations BREAK=grace   # those whose name matches the regular expression
package main
