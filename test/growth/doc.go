// Command growth measures one node as its pods become more: the agent with its production wiring in a
// process of its own, against a simulated API server (test/fakeapi) and runtime (test/fakecri) in this
// process, which answer at once. So CPU, memory and profiles are those of the agent alone.
//
//	go run ./test/growth -pods 10,100,1000 -profiles /tmp/growth
package main
