// Package certificate keeps the node's own certificates: asks the API server for them,
// renews them in time, and reads them again where somebody else puts them into files.
package certificate
