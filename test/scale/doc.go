// Package scale measures what many nodes cost an API server: hundreds of our agents in one process, and
// upstream's kubemark hollow nodes beside as many agents of ours in processes of their own. etcd and the API
// server are real, and nothing else runs in the cluster.
//
//   - Requests are counted in the API server's audit log, by node: exact, and the same for every kubelet.
//   - Bytes are counted by a TCP relay between nodes and API server: those of the connection, with TLS and
//     headers, in both directions.
//   - Watches are those that the API server reports as open, less those of before the nodes started.
//
// One file per phase of a run; plan.go lists the runs and rows.go the table.
package scale
