// Package cves has patches that remove the guard against one CVE each. hack/cves.sh applies them to a copy of
// the source code and checks that a test fails.
package cves
