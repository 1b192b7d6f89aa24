# Compiles everything, runs all tests and prints their results as TAP.
set -e
cd "$(dirname "$0")"
jars=/usr/share/java/junit4.jar:/usr/share/java/hamcrest-core.jar
mkdir -p build
javac -cp "$jars" -d build $(find src tests -name '*.java')
exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$jars:build" harbour.Tap \
  $(cd tests && find . -name '*Test.java' | sed 's|^\./||; s|\.java$||; s|/|.|g' | sort)
