# Compiles everything and runs all tests.
set -e
cd "$(dirname "$0")"
jars=/usr/share/java/junit4.jar:/usr/share/java/hamcrest-core.jar
mkdir -p build
javac -cp "$jars" -d build $(find src tests -name '*.java')
exec java -cp "$jars:build" org.junit.runner.JUnitCore \
  $(cd tests && find . -name '*Test.java' | sed 's|^\./||; s|\.java$||; s|/|.|g' | sort)
