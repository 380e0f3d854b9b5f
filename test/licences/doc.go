// Package licences checks that every module that is linked into our executables has a licence that is
// known and allowed.
package licences
