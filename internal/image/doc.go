// Package image brings the images that containers need onto the node: it decides by the
// pull policy whether to pull, finds the credentials, keeps pulls within the configured
// limits, shares one pull among pods that ask for the same, backs off after failures, and
// tells the user about each step. It also removes images that nobody uses.
package image
