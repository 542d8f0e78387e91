// Package download brings the files of a pinned repository to this machine and
// proves that they are the right ones.
//
// A Manifest pins a repository: its revision, and each file's size and digest.
// Pull fetches what is missing and Verify hashes what is there. Both keep what
// they have proved in a Receipt, so that Check and Locate can tell in
// milliseconds whether files are still those that were proved.
//
// What is promised, whatever servers, disks and people do meanwhile:
//   - a file has its final name only after its pinned digest matched;
//   - a file that was proved is never fetched again and never changed;
//   - copies found in other folders are read and linked to, never written;
//   - a token goes to the endpoint it was given for, and to no other host.
//
// What the files mean, and advice to people, belong to others.
package download
